"""chatd stores chats and runs their turns."""
