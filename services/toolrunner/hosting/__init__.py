"""Hosting: making, stopping, removing and merging the workspaces that live on this node."""
