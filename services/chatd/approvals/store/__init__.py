"""PostgreSQL of the slice `approvals`."""
