"""What commands do with chats."""
