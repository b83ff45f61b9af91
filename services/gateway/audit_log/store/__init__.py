"""The audit log in PostgreSQL."""
