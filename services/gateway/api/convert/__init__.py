"""Protos to public JSON and back."""
