"""gRPC methods of schedules, and the requests that runs make."""
