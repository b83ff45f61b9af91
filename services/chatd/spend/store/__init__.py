"""PostgreSQL of the slice `spend`."""
