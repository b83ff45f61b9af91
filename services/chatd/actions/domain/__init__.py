"""Actions as values, and the rules of their answers."""
