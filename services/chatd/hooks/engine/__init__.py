"""Cached hooks, and their dispatch."""
