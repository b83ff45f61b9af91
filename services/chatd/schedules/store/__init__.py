"""PostgreSQL of the slice `schedules`."""
