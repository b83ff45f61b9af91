"""Clients of other services of the slice `users`."""
