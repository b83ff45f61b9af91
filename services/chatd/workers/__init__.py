"""Workers, their leases and their slots."""
