"""Starts, checks and applies races."""
