"""The background task of the slice `monitors`."""
