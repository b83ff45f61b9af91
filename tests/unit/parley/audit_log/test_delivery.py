"""Audit events wait while the database of their service is down."""

import asyncio
import logging
from typing import cast

import pytest

from parley.audit_log.delivery import INTERVAL_S, PAUSE_S, AuditDelivery
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable, Pool
from parley.rpc import Channels


class Outbox:
    """An empty outbox in a database that is down at first."""

    def __init__(self) -> None:
        self.is_down = True

    async def fetch(self, statement: str, *arguments: object) -> list[object]:
        if self.is_down:
            raise DatabaseUnavailable("connection refused")
        return []


async def test_an_outage_of_the_database_is_logged_once_without_a_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    clock, outbox = FakeClock(), Outbox()
    gateways = cast(Channels, None)  # An empty outbox needs none.
    delivery = AuditDelivery(cast(Pool, outbox), "chat", gateways, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        running = tasks.create_task(delivery.run())
        for _ in range(2):
            assert await clock.until_sleeping() == PAUSE_S
            clock.advance(PAUSE_S)
        assert await clock.until_sleeping() == PAUSE_S
        outbox.is_down = False
        clock.advance(PAUSE_S)
        assert await clock.until_sleeping() == INTERVAL_S
        running.cancel()
    (record,) = caplog.records
    assert record.exc_info is None
    assert record.getMessage() == (
        "audit events wait to be delivered: PostgreSQL is not available (connection refused); "
        "is the server running?"
    )
