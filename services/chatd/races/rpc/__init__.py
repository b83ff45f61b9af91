"""gRPC methods of races."""
