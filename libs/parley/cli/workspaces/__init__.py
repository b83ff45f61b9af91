"""What commands do with workspaces."""
