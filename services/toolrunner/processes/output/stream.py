"""Streams of output from any cursor on, for readers of any speed."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolrunner.journal.records import ProcessRecord
from toolrunner.primitives.domain import ProcessId, Scope
from toolrunner.primitives.errors import InvalidRequest, OutputGone
from toolrunner.processes.live_process import LiveProcess
from toolrunner.processes.output.excerpt import Source
from toolrunner.processes.registry import Registry

CHUNK_BYTES: Final = 64 * 1024
HEARTBEAT_S: Final = 15.0
#: Instead of a cursor: only future output.
FROM_NOW: Final = -1


class CloseReason(StrEnum):
    """Why a stream ended before the output did; names are those of the proto."""

    GOING_AWAY = "going_away"
    RESYNC = "resync"


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of output."""

    data: bytes
    cursor: int


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Sent while there is no output."""


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """All output was sent, and the process has ended."""

    record: ProcessRecord
    next_cursor: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The stream ends before the output does."""

    reason: CloseReason


StreamEvent = Chunk | Heartbeat | StreamEnded | Closed


@dataclass(frozen=True, slots=True)
class OutputStream:
    """The output of one process from a cursor on."""

    registry: Registry
    scope: Scope
    record: ProcessRecord
    cursor: int

    @classmethod
    async def open(
        cls, registry: Registry, scope: Scope, process_id: ProcessId, since_cursor: int
    ) -> "OutputStream":
        """Open a stream.

        Raises:
            ProcessNotFound: There is none that this chat may see.
            InvalidRequest: The cursor is past the output.
            OutputGone: The log no longer has the output at the cursor.
        """
        record = await registry.get(scope, process_id)
        end = _end(registry.output(record))
        cursor = end if since_cursor == FROM_NOW else since_cursor
        if cursor > end:
            raise InvalidRequest("since_cursor", f"is past the output of {end} bytes")
        spans = registry.output(record).spans
        if cursor < end and not any(start <= cursor < stop for start, stop in spans):
            oldest = min(start for start, _ in spans if start > cursor)
            raise OutputGone(process_id, oldest)
        return cls(registry, scope, record, cursor)

    async def events(
        self, *, follows: bool, heartbeat_s: float = HEARTBEAT_S
    ) -> AsyncGenerator[StreamEvent]:
        """Yield output, heartbeats while there is none, and one end."""
        cursor = self.cursor
        live = self.registry.live(self.record.process_id)
        while True:
            # Checked before the size of the output: nothing can be added in between.
            is_over = live is None or not follows or live.ended.is_set()
            source = self.registry.output(self.record)
            end = _end(source)
            if cursor < end:
                chunk = _chunk(source, cursor)
                if chunk is None:
                    yield Closed(CloseReason.RESYNC)
                    return
                cursor += len(chunk.data)
                yield chunk
            elif is_over or live is None:
                record = await self.registry.get(self.scope, self.record.process_id)
                yield StreamEnded(record, cursor)
                return
            elif self.registry.stopping.is_set():
                yield Closed(CloseReason.GOING_AWAY)
                return
            elif not await _changed_within(live, heartbeat_s):
                yield Heartbeat()


async def _changed_within(live: LiveProcess, limit_s: float) -> bool:
    try:
        async with asyncio.timeout(limit_s):
            await live.output_grew.wait()
    except TimeoutError:
        return False
    return True


def _end(source: Source) -> int:
    return source.spans[-1][1] if source.spans else 0


def _chunk(source: Source, cursor: int) -> Chunk | None:
    """Return the output at a cursor, or None if it was dropped."""
    for start, end in source.spans:
        if start <= cursor < end:
            return Chunk(source.read(cursor, min(end, cursor + CHUNK_BYTES)), cursor)
    return None
