"""Terminals over WebSockets."""
