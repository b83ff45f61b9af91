"""The background task of the slice `schedules`."""
