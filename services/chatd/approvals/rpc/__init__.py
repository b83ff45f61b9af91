"""gRPC methods and proto conversion of the slice `approvals`."""
