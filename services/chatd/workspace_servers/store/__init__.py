"""PostgreSQL of the slice `workspace_servers`."""
