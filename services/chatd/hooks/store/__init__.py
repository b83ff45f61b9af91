"""Hooks and their deliveries in PostgreSQL."""
