"""Bodies of requests, as they are checked."""
