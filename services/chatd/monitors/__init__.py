"""Monitors: chats that are woken when a background process prints a line or ends."""
