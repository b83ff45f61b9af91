"""Pure values and decisions of workspaces."""
