"""PostgreSQL of the slice `goals`."""
