"""The client of the HTTP API for commands."""
