"""Fault points in the lifecycle of a workspace, at which a test may kill the service."""

from pathlib import Path
from typing import Protocol

from parley.clock import Clock
from parley.testing.faultpoints import FaultpointDirectory


class Points(Protocol):
    """Named fault points."""

    async def reached(self, point: str, subject: str) -> None:
        """Trigger the armed fault, if any."""
        ...


class NoPoints:
    """No faults."""

    async def reached(self, point: str, subject: str) -> None:
        """Do nothing."""


def points_of(directory: Path | None, clock: Clock) -> Points:
    """Return the fault points that a directory arms; without one there are none."""
    return NoPoints() if directory is None else FaultpointDirectory(directory, clock)
