"""gRPC methods of GitService."""
