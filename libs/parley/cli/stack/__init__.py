"""A stack as values: services, addresses, settings, processes to start."""
