"""The background task of the slice `goals`."""
