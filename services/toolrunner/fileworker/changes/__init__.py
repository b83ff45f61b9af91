"""Changes of files: planned, made as a whole, undone."""
