"""Search of files by name and by content."""
