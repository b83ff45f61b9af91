"""Rotation of keys: master keys, signing keys of services, and certificates."""
