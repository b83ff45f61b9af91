"""Types of request bodies, with their validation."""
