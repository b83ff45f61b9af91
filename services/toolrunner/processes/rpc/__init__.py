"""gRPC methods of ProcessService."""
