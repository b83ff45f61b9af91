"""Pure values and decisions of the slice `files`."""
