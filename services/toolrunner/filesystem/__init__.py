"""Files and directory trees, with the standard library only."""
