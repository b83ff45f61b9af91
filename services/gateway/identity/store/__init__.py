"""Identity in PostgreSQL."""
