"""Live events: hubs, positions, feeds, relays between replicas, StreamService."""
