"""File changes: plan, commit and undo."""
