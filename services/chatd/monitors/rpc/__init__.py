"""gRPC methods of monitors, and the requests that monitors make."""
