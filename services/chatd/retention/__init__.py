"""Retention: chats that nobody uses are archived, and archived ones deleted, by age."""
