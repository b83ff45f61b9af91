"""McpRuntimeService: lists and calls tools for chats."""
