"""PostgreSQL of the slice `instructions`."""
