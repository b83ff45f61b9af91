"""Git repositories of a workspace, looked at by the program that works on its files."""
