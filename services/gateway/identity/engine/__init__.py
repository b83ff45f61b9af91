"""Background tasks, caches and rules of identity."""
