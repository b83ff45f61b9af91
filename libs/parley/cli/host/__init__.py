"""What this machine offers."""
