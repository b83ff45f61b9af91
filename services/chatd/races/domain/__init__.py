"""Values of races."""
