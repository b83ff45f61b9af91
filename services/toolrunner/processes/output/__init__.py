"""Output of processes: capture, limits and reads."""
