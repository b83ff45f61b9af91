"""gRPC methods of FileService."""
