"""What is true of chats: values, commands and rules; no I/O, no clock, no chance."""
