"""The stored actions."""
