"""The file worker: a program that works on the files of one workspace."""
