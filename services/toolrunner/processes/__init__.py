"""Processes of workspaces: start, monitoring, waits and termination."""
