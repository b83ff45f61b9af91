"""ActionService."""
