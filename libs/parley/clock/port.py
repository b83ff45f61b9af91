"""The clock port and its system implementation."""

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The operations on time that code may use."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC, for display and records."""
        ...

    def monotonic(self) -> float:
        """Return monotonic seconds, for measuring and for deadlines."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Return after `delay_s` seconds of this clock."""
        ...


class SystemClock:
    """The system clock."""

    def now(self) -> datetime:
        """Return the wall-clock time in UTC."""
        return datetime.now(UTC)  # noqa: TID251 (this is the clock)

    def monotonic(self) -> float:
        """Return the monotonic time in seconds."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Sleep on the event loop."""
        await asyncio.sleep(delay_s)  # noqa: TID251 (this is the clock)
