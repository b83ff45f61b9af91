"""Tools that a model can call: workspace tools, MCP tools, client tools."""
