"""Values and rules of workspaces; no I/O."""
