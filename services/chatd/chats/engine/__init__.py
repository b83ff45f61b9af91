"""Tasks of chats."""
