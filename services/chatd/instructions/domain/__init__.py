"""Pure rules of the slice `instructions`."""
