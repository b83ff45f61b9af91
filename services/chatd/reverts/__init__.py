"""Reverts of chats: history and files."""
