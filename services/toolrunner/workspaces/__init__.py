"""Workspaces on this node: made, started, stopped, merged, removed."""
