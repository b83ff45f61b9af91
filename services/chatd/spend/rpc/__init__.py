"""gRPC methods and conversion to protos of the slice `spend`."""
