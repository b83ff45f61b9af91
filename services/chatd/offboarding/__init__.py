"""Suspended and deleted users and deleted groups: their turns stop, their data is removed."""
