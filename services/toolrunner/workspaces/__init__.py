"""Workspaces on this node: creation, start, stop, merge and removal."""
