"""Requests and replies, apart from any provider's format."""
