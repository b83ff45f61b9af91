"""Merging a forked workspace into its parent."""
