"""gateway serves HTTP and SSE to clients, calls services over gRPC, and manages users."""
