"""MCP servers: value types and their store in PostgreSQL."""
