"""gRPC methods of HostService."""
