"""Checkpoints of turns: the previous content of files that a turn changes, and their restore."""
