"""mcpgateway gives chats access to the tools of remote MCP servers."""
