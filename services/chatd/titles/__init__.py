"""Titles, turn labels and summaries of chats, written by a model in the background."""
