"""Serves the audit log."""
