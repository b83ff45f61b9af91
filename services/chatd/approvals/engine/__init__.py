"""Caches of the slice `approvals`."""
