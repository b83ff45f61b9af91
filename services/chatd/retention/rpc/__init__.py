"""gRPC methods of retention."""
