"""The gRPC methods of logins."""
