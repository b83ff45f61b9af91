"""Requests and replies, independent of any provider's format."""
