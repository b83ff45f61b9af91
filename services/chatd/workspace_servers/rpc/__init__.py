"""gRPC methods of workspace servers."""
