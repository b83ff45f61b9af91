"""Pages that are read in a browser."""
