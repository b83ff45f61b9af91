"""PostgreSQL of the slice `files`."""
