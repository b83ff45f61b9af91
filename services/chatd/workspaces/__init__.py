"""The control plane of workspaces: templates, nodes, lifetimes, secrets."""
