"""The client of MCP servers: sessions, tools, results."""
