"""Clients of other services in the slice `workspaces`."""
