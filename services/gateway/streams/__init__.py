"""Streams from chatd to clients: links, tunnelled calls, server-sent events."""
