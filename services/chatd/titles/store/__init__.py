"""PostgreSQL of the slice `titles`."""
