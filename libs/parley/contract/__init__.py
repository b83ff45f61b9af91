"""Reads the contract that the protos declare: JSON fields, rules and HTTP bindings."""
