"""Reads instruction files from the nodes of workspaces."""
