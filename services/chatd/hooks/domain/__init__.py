"""Hooks as values: events, matching, payloads and answers."""
