"""Hints between processes that something changed: the port, its PostgreSQL adapter and a fake."""

from parley.bus.memory import InMemoryBus
from parley.bus.port import Bus, BusError, BusItem, Notice, NoticeTooLong, Resync
from parley.bus.postgres import BusTiming, PostgresBus

__all__ = [
    "Bus",
    "BusError",
    "BusItem",
    "BusTiming",
    "InMemoryBus",
    "Notice",
    "NoticeTooLong",
    "PostgresBus",
    "Resync",
]
