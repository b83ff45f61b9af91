"""Disk, memory and processor time of workspaces, and who has too much."""
