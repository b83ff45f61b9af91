"""Calls wait to be cancelled while the database is down."""

import asyncio
import logging
from datetime import timedelta
from typing import cast

import pytest

from chatd.chats.store.cleanup.cancelled_calls import CancelledCall
from chatd.content.domain.tools import Tools
from chatd.tools.cancellations import LOOK_EVERY_S, Cancellations
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable


class NoCalls:
    """No stored calls, in a database that is down at first."""

    def __init__(self) -> None:
        self.is_down = True
        self.reads = 0

    async def take(self, calls_max: int, kept: timedelta) -> tuple[CancelledCall, ...]:
        self.reads += 1
        if self.is_down:
            raise DatabaseUnavailable("connection refused")
        return ()

    async def delete(self, call: CancelledCall) -> None:
        raise AssertionError(call)


async def test_an_outage_of_the_database_is_logged_once_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock, calls = FakeClock(), NoCalls()
    tools = cast(Tools, None)  # Without calls none is asked.
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(Cancellations(calls, tools, clock).run())
        for reads in (1, 2, 3):
            assert (await clock.until_sleeping(), calls.reads) == (LOOK_EVERY_S, reads)
            clock.advance(LOOK_EVERY_S)
        calls.is_down = False
        assert await clock.until_sleeping() == LOOK_EVERY_S
        running.cancel()
    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage().startswith("calls wait to be cancelled: PostgreSQL is not available")
