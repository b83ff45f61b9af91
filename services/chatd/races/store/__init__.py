"""Races in PostgreSQL."""
