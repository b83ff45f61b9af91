"""The wire formats of providers."""
