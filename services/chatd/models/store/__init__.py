"""PostgreSQL of the slice `models`."""
