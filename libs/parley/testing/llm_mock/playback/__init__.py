"""Plays a reply as timed steps."""
