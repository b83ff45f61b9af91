"""Pure values and decisions of the slice `turns`."""
