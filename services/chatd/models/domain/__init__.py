"""Pure values and decisions of the slice `models`."""
