"""gRPC methods of goals, and the requests that goals make."""
