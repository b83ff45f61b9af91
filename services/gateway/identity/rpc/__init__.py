"""The gRPC side of the gateway."""
