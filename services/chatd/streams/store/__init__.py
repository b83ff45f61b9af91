"""PostgreSQL of the slice `streams`."""
