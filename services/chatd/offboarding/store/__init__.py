"""PostgreSQL of the slice `offboarding`."""
