"""Chats: the state machine, its store, commands, queue, listing and sharing."""
