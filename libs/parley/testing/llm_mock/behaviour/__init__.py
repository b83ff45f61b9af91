"""The behaviour of the mock model."""
