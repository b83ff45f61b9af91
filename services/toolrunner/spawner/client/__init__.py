"""The client of the spawner, in the service."""
