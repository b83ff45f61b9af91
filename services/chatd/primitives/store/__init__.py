"""PostgreSQL of the slice `primitives`."""
