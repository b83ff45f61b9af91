"""Pins the instruction files of chats."""
