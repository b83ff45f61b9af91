"""gRPC methods of the slice `instructions`."""
