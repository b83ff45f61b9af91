"""Conversion between protos and public JSON."""
