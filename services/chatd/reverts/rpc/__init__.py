"""gRPC methods of reverts."""
