"""PostgreSQL of the slice `chats`."""
