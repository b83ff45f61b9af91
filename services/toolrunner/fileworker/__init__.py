"""The program that works on the files of one workspace, in a process of its own."""
