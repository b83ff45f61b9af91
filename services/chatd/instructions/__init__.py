"""Instruction files of workspaces, pinned per chat, and the context breakdown of chats."""
