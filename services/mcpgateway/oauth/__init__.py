"""Logins of users at MCP servers with OAuth: flows, grants and their renewal."""
