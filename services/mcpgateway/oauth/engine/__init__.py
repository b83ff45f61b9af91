"""Requests to authorization servers, and what they lead to."""
