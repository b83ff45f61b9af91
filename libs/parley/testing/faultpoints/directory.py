"""Fault points armed by files, so that a running process can be armed and disarmed from outside.

A point is armed by a file of its name in the directory, which is read at every visit; without one a
visit costs a failed `open`. Visits that count are appended to `reached.jsonl` before the action, so
that a test can tell exactly which subjects were at the point when a fault occurred.
"""

import json
import os
import signal
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, assert_never

from parley.clock import Clock
from parley.testing.faultpoints.arming import Action, Arming


class FaultInjected(Exception):
    """A failure injected by a test.

    Attributes:
        point: The name of the fault point.
    """

    def __init__(self, point: str) -> None:
        super().__init__(f"the fault at {point} was asked for; disarm it to go on without")
        self.point = point


REACHED: Final = "reached.jsonl"
LOOK_EVERY_S: Final = 0.01


@dataclass(slots=True)
class _Visits:
    """The subjects that visited a point under one arming."""

    id: str
    counts: Counter[str] = field(default_factory=Counter)
    gathered: set[str] = field(default_factory=set)


class FaultpointDirectory:
    """The fault points of one process; several processes may share a directory."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory = directory
        self._clock = clock
        self._visits: dict[str, _Visits] = {}

    def arming(self, point: str) -> Arming | None:
        """Return the current arming of a point."""
        try:
            return Arming.from_json((self._directory / point).read_text())
        except FileNotFoundError:
            return None

    async def reached(self, point: str, subject: str) -> None:
        """Perform the action of an armed point; usually none is armed.

        Raises:
            FaultInjected: the action is to fail.
        """
        armed = self.arming(point)
        if armed is None or not armed.is_for(os.getpid(), subject):
            return
        visits = self._visits.get(point)
        if visits is None or visits.id != armed.id:
            visits = self._visits[point] = _Visits(armed.id)
        visits.counts[subject] += 1
        if visits.counts[subject] != armed.nth:
            return
        visits.gathered.add(subject)
        self._note(point, subject, armed)
        if len(visits.gathered) < armed.gather:
            await self._hold(point, armed)
        else:
            await self._act(point, armed)

    def _note(self, point: str, subject: str, armed: Arming) -> None:
        line = {"point": point, "subject": subject, "pid": os.getpid(), "arming": armed.id}
        with (self._directory / REACHED).open("a") as file:
            file.write(json.dumps(line) + "\n")

    async def _hold(self, point: str, armed: Arming) -> None:
        while (now := self.arming(point)) is not None and now.id == armed.id:
            await self._clock.sleep(LOOK_EVERY_S)

    async def _act(self, point: str, armed: Arming) -> None:
        match armed.action:
            case Action.HOLD:
                await self._hold(point, armed)
            case Action.KILL:
                os.kill(os.getpid(), signal.SIGKILL)
            case Action.STOP:
                os.kill(os.getpid(), signal.SIGSTOP)
            case Action.BLOCK:
                time.sleep(armed.seconds)  # noqa: TID251, ASYNC251 (blocking is the fault)
            case Action.RAISE:
                raise FaultInjected(point)
            case _:
                assert_never(armed.action)
