"""What is durable of chats: tables, statements, and the store that executes decisions."""
