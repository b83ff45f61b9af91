"""Push services of browsers."""
