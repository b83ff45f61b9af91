"""Quotas of workspaces: disk, memory, processes and CPU time."""
