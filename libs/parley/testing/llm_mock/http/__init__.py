"""The HTTP server of the mock."""
