"""mcpgateway makes remote MCP servers look like local tools."""
