"""Serves break-glass accesses."""
