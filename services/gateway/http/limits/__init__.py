"""Limits per user and address: connections, requests, concurrent calls."""
