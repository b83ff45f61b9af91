"""Bounds per user and address: connections, requests, calls at a time."""
