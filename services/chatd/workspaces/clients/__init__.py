"""Clients of other services of the slice `workspaces`."""
