"""Pure values and functions of the slice `push`."""
