"""When monitors wake their chats, as values and rules."""
