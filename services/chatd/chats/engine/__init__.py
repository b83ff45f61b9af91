"""Tasks and caches of the slice `chats`."""
