"""Offboarding: stops turns of suspended users, removes data of deleted users and groups."""
