"""PostgreSQL of the slice `turns`."""
