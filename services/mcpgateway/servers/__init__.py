"""MCP servers as values and in PostgreSQL."""
