"""toolrunner runs processes and files of workspaces, each call at most once."""
