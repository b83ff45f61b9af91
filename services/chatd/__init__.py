"""chatd owns chats and the turns that run in them."""
