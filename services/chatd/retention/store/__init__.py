"""PostgreSQL of the slice `retention`."""
