"""Workspaces as values: their lives, their limits, where they go and what is told about them."""
