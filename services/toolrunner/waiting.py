"""Waiting for a process: until its exit or its output, within a bound, without asking again."""

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from toolrunner.domain import LIVE, ProcessId, ProcessRecord, Scope
from toolrunner.errors import InvalidRequest
from toolrunner.live import LiveProcess
from toolrunner.output import Budget, Excerpt, excerpt
from toolrunner.registry import Registry


class Until(StrEnum):
    """What ends a wait."""

    EXIT = "exit"
    OUTPUT = "output"
    SNAPSHOT = "snapshot"


class Reason(StrEnum):
    """Why a wait was over; names are those of the proto."""

    EXITED = "exited"
    OUTPUT = "output"
    TIMEOUT = "timeout"
    SNAPSHOT = "snapshot"
    GOING_AWAY = "going_away"


@dataclass(frozen=True, slots=True)
class Wait:
    """What to wait for, for how long, and how much of the output to return."""

    until: Until
    max_wait_s: float
    since_cursor: int
    budget: Budget


@dataclass(frozen=True, slots=True)
class Waited:
    """What a wait found."""

    record: ProcessRecord
    output: Excerpt
    reason: Reason


async def wait_output(
    registry: Registry, scope: Scope, process_id: ProcessId, wait: Wait
) -> Waited:
    """Wait for a process and return its output after a cursor; running out of time is an answer.

    Raises:
        ProcessNotFound: There is none that this chat may see.
        InvalidRequest: The cursor is past the output.
    """
    record = await registry.get(scope, process_id)
    if wait.since_cursor > record.output_bytes:
        raise InvalidRequest("since_cursor", f"is past the output of {record.output_bytes} bytes")
    live = registry.live(process_id)
    reason = Reason.EXITED if live is None else await _reason(live, wait, registry.stopping)
    # The record before the output: one that says "exited" comes with all of it.
    record = await registry.get(scope, process_id)
    source = registry.output(record)
    end = source.spans[-1][1] if source.spans else 0
    if live is not None and record.state in LIVE:
        end = max(wait.since_cursor, live.output.complete_bytes)
    start = min(wait.since_cursor, end)
    return Waited(record, excerpt(source, start, end, wait.budget), reason)


async def _reason(live: LiveProcess, wait: Wait, stopping: asyncio.Event) -> Reason:
    try:
        async with asyncio.timeout(wait.max_wait_s):
            while (reason := _met(live, wait)) is None:
                if stopping.is_set():
                    return Reason.GOING_AWAY
                # Who waits for the end is not woken by every piece of output.
                change = live.ending if wait.until is Until.EXIT else live.output_grew
                await change.wait()
    except TimeoutError:
        return _met(live, wait) or Reason.TIMEOUT
    return reason


def _met(live: LiveProcess, wait: Wait) -> Reason | None:
    match wait.until:
        case Until.SNAPSHOT:
            return Reason.SNAPSHOT
        case Until.EXIT:
            return Reason.EXITED if live.ended.is_set() else None
        case Until.OUTPUT:
            if live.output.complete_bytes > wait.since_cursor:
                return Reason.OUTPUT
            return Reason.EXITED if live.ended.is_set() else None
        case _:
            assert_never(wait.until)
