"""FileService: files of workspaces, through a pool of file workers."""
