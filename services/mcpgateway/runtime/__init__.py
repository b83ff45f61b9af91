"""McpRuntimeService: tools listed and called for chats."""
