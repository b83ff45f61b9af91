"""The gRPC servicers of the gateway."""
