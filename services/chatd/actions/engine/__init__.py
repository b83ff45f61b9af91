"""Dispatching of calls that a person allowed."""
