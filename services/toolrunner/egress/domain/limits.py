"""Bounds on what the connections of one workspace may take."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds; times in seconds.

    Attributes:
        connections: At a time.
        head_bytes: Of the lines before a body, and of a ClientHello.
        head_s: Until they are there.
        connect_s: Until a connection is made, its name resolved and its TLS agreed.
        idle_s: Without a byte in one direction.
        total_s: Of one connection altogether.
        sent_bytes: Out, per connection.
        received_bytes: In, per connection.
    """

    connections: int = 128
    head_bytes: int = 32 * 1024
    head_s: float = 15.0
    connect_s: float = 20.0
    idle_s: float = 300.0
    total_s: float = 4 * 3600.0
    sent_bytes: int = 4 * 1024**3
    received_bytes: int = 32 * 1024**3
