"""gateway is the front: HTTP and SSE in, gRPC out, and the users who may."""
