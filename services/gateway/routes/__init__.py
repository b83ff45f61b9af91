"""The handlers of routes and the routing table."""
