"""Tasks and caches of the process of the slice `turns`."""
