"""Tasks, caches and decisions of identity."""
