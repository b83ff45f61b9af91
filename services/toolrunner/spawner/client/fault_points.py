"""Fault injection for tests: named fault points around starts and in the lives of workspaces.

`spawn.before` is between the journal and the start of a process, `spawn.after` between its start
and the journal. Without a directory the spawner is not wrapped.
"""

from pathlib import Path
from typing import Protocol

from parley.clock import Clock
from parley.testing.faultpoints import FaultpointDirectory
from toolrunner.spawner.client.spawner import Launch, Launched, OnExit, Spawner


def with_fault_points(spawner: Spawner, directory: Path | None, clock: Clock) -> Spawner:
    """Return a spawner with fault points around its starts, if a directory to arm them is given."""
    if directory is None:
        return spawner
    return SpawnerWithFaultPoints(spawner, FaultpointDirectory(directory, clock))


class SpawnerWithFaultPoints:
    """A spawner that visits fault points; the subject is the last argument of the command."""

    def __init__(self, spawner: Spawner, points: FaultpointDirectory) -> None:
        self._points = points
        self._spawner = spawner
        self.watch = spawner.watch
        self.signal = spawner.signal
        self.close_input = spawner.close_input
        self.forget = spawner.forget
        self.end = spawner.end
        self.end_workspace = spawner.end_workspace
        self.signal_marked = spawner.signal_marked
        self.end_all = spawner.end_all

    async def start(self, launch: Launch, on_exit: OnExit) -> Launched:
        """Start a process between two fault points."""
        await self._points.reached("spawn.before", launch.argv[-1])
        launched = await self._spawner.start(launch, on_exit)
        await self._points.reached("spawn.after", launch.argv[-1])
        return launched


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
