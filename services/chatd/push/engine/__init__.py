"""Delivery of notifications."""
