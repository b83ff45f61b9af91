"""Steps of a workspace's life at which a test may let the service die."""

from pathlib import Path
from typing import Protocol

from parley.clock import Clock
from parley.testing.faultpoints import FaultpointDirectory


class Points(Protocol):
    """Named points that are visited on the way."""

    async def reached(self, point: str, subject: str) -> None:
        """Let happen what was asked for; usually nothing."""
        ...


class NoPoints:
    """Nothing ever happens."""

    async def reached(self, point: str, subject: str) -> None:
        """Go on."""


def points_of(directory: Path | None, clock: Clock) -> Points:
    """Return the points that a directory arms; without one nothing ever happens."""
    return NoPoints() if directory is None else FaultpointDirectory(directory, clock)
