"""Adapters for `Tools`: the services that execute them."""
