"""Hashing of passwords in processes of low priority."""
