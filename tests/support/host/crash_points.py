"""Crashes at every step that changes something on disk, one run after another.

The interpreter tells of each such step before it is made. Whoever crashes makes none after it, so
that no clean-up of the dying program helps what comes after.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

STEPS = frozenset({"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "os.symlink"})


class Crashed(BaseException):
    """The program is dead."""


@dataclass
class CrashPoint:
    """The step before which to crash, counted from 0.

    Attributes:
        steps: How many steps came.
    """

    number: int
    steps: int = 0

    @property
    def is_reached(self) -> bool:
        return self.steps > self.number

    def step(self) -> None:
        self.steps += 1
        if self.is_reached:
            raise Crashed


_armed: list[CrashPoint] = []


def _heard(event: str, arguments: tuple[Any, ...]) -> None:
    if not _armed:
        return
    is_new_file = event == "open" and bool((arguments[2] or 0) & (os.O_CREAT | os.O_TRUNC))
    if event in STEPS or is_new_file:
        _armed[-1].step()


sys.addaudithook(_heard)  # It cannot be removed again, so it does nothing when none is armed.


@contextmanager
def crashing_before(number: int) -> Iterator[CrashPoint]:
    """Crash before the numbered step of the block; the crash ends with the block."""
    point = CrashPoint(number)
    _armed.append(point)
    try:
        yield point
    except Crashed:
        pass
    finally:
        _armed.remove(point)
