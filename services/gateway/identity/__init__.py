"""Users, groups, sessions, keys and service tokens."""
