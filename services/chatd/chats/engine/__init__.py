"""In-process tasks and caches of the slice `chats`."""
