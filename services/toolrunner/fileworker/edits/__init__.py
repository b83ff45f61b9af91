"""Edits of text: replacements and patches."""
