"""gRPC methods of the slice `workers`."""
