"""The arming of a fault point, as a value and as a file."""

import json
import os
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from parley.clock import Clock


class Action(StrEnum):
    """The action at a fault point."""

    HOLD = "hold"  # Wait until the point is disarmed; the process goes on.
    KILL = "kill"  # The process ends at once, as by kill -9.
    STOP = "stop"  # The process gets SIGSTOP and waits for SIGCONT.
    BLOCK = "block"  # The event loop is blocked for a while.
    RAISE = "raise"


@dataclass(frozen=True, slots=True)
class Arming:
    """The arming of one fault point.

    Attributes:
        id: Distinguishes this arming from an earlier one of the same point.
        action: The action.
        pid: The only process it applies to; None means all.
        subjects: The only subjects it applies to; empty means all.
        nth: The number of the visit of a subject that triggers it.
        gather: The number of subjects that must have arrived before it triggers; earlier ones wait.
        seconds: How long a block lasts.
    """

    id: str
    action: Action
    pid: int | None = None
    subjects: tuple[str, ...] = ()
    nth: int = 1
    gather: int = 1
    seconds: float = 0.0

    def is_for(self, pid: int, subject: str) -> bool:
        """Return whether it applies to a visit."""
        return self.pid in (None, pid) and (not self.subjects or subject in self.subjects)

    def to_json(self) -> str:
        """Return the content of the file that arms a fault point."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Arming":
        """Parse the file that arms a fault point."""
        fields: dict[str, Any] = json.loads(text)
        fields["action"] = Action(fields["action"])
        fields["subjects"] = tuple(fields.get("subjects", ()))
        return cls(**fields)


CLOCK_FILE: Final = "clock"


class OffsetClock:
    """The clock of a machine with the wrong time: only the wall time differs.

    The file `clock` in the directory has the offset for one process: {"pid": 1, "offset_s": 2}.
    """

    def __init__(self, clock: Clock, directory: Path) -> None:
        self._clock = clock
        self._file = directory / CLOCK_FILE

    def now(self) -> datetime:
        """Return the wall time with the offset."""
        return self._clock.now() + timedelta(seconds=self._offset_s())

    def monotonic(self) -> float:
        """Return the monotonic time, without the offset."""
        return self._clock.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Sleep, without the offset."""
        await self._clock.sleep(delay_s)

    def _offset_s(self) -> float:
        try:
            asked = json.loads(self._file.read_text())
        except FileNotFoundError:
            return 0.0
        return float(asked["offset_s"]) if asked["pid"] == os.getpid() else 0.0
