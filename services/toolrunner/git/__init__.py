"""GitService: repositories of workspaces, through the file workers."""
