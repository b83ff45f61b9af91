"""HTTP: server, protocol, authentication, problems, preconditions."""
