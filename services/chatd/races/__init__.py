"""Races: one task, given to several models at once."""
