"""Users and groups, which the gateway stores."""
