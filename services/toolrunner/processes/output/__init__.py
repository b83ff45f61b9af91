"""Output of processes: captured, bounded, read."""
