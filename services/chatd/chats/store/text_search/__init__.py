"""The index of what was written, and searches in it."""
