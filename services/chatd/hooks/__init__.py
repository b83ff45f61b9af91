"""Hooks: HTTP consumers that get signed events of chats, and decide on some of them."""
