"""PostgreSQL of the slice `monitors`."""
