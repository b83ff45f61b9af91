"""MCP servers inside workspaces: definitions in `.mcp.json`, trust, processes and their tools."""
