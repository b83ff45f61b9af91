"""Processes that need an owner, in virtual time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from parley.tasks import BackgroundTasks
from support.host.supervised import supervision
from support.host.virtual_time import LoopClock, in_virtual_time
from toolrunner.primitives.domain import ProcessId
from toolrunner.processes.ownership import CLAIM_S, Ownership

PROCESS = ProcessId("01900000-0000-7000-8000-000000000001")


@dataclass(slots=True)
class EndingSpawner:
    """Notes which processes were ended."""

    ended: list[ProcessId] = field(default_factory=list)

    async def end(self, process_id: ProcessId, grace_s: float) -> None:
        self.ended.append(process_id)


@asynccontextmanager
async def ownership() -> AsyncIterator[tuple[Ownership, EndingSpawner]]:
    spawner: Any = EndingSpawner()
    async with BackgroundTasks(supervision(LoopClock())) as tasks:
        yield Ownership(spawner, tasks), spawner


@in_virtual_time
async def test_a_process_without_an_owner_is_ended_after_a_while() -> None:
    async with ownership() as (owners, spawner):
        owners.expect(PROCESS)
        await LoopClock().sleep(CLAIM_S - 1)
        assert spawner.ended == []
        await LoopClock().sleep(2)
        assert spawner.ended == [PROCESS]


@in_virtual_time
async def test_a_process_ends_with_its_owner_and_not_before() -> None:
    async with ownership() as (owners, spawner):
        owners.expect(PROCESS)
        with owners.claimed(PROCESS):
            await LoopClock().sleep(10 * CLAIM_S)
            assert spawner.ended == []
        await LoopClock().sleep(1)
        assert spawner.ended == [PROCESS]


@in_virtual_time
async def test_nothing_is_waited_for_when_the_service_stops() -> None:
    async with ownership() as (owners, spawner):
        owners.expect(PROCESS)
        owners.close()
        await LoopClock().sleep(2 * CLAIM_S)
        assert spawner.ended == []
