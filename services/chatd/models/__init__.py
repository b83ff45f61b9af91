"""Providers, models, keys, prices and settings: the catalogue and which model a turn uses."""
