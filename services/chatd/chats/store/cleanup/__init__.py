"""What is left of chats and calls, and its removal."""
