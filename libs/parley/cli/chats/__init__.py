"""Commands on chats."""
