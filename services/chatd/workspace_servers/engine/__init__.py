"""Sessions with workspace servers, and the state of each."""
