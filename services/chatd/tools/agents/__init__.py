"""Tools with which a model starts agents, waits for them and talks to them."""
