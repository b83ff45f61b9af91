"""Logins in PostgreSQL; secrets are encrypted."""
