"""Pure values and decisions of the slice `workspaces`."""
