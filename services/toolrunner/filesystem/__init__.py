"""Files and trees on disk, with the standard library alone."""
