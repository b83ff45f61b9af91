"""The service's side of the spawner."""
