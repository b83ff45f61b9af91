"""Signed requests to the consumers of hooks."""
