"""What chats wait for from people, and the answers."""
