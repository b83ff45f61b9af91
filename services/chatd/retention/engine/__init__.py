"""The background task of the slice `retention`."""
