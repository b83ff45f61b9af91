"""PostgreSQL of the slice `content`."""
