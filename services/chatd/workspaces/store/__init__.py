"""PostgreSQL of the slice `workspaces`."""
