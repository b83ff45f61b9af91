"""Background tasks and caches of the slice `offboarding`."""
