"""This node: registration, readiness, policies."""
