"""A clock whose wall time a test changes while the process runs."""

import json
import os
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from parley.clock import Clock

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
