"""McpServerService: MCP servers, managed by administrators."""
