"""Jobs of a user who has many do not keep those of others from being run."""

import asyncio

import pytest

from chatd.primitives.domain.ids import OwnerId
from chatd.titles.engine.jobs import JobQueue

ANN, BOB, EVE = OwnerId("ann"), OwnerId("bob"), OwnerId("eve")


async def run_in_order(jobs: JobQueue, *added: tuple[OwnerId, str]) -> list[str]:
    """Add jobs, run them, and return their names in the order in which they ran."""
    ran: list[str] = []

    def add(owner_id: OwnerId, name: str) -> None:
        async def work() -> None:
            ran.append(name)

        jobs.add(owner_id, work)

    for owner_id, name in added:
        add(owner_id, name)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(jobs.run())
        await jobs.done()
        running.cancel()
    return ran


async def test_users_take_turns() -> None:
    added = [(ANN, "a1"), (ANN, "a2"), (ANN, "a3"), (BOB, "b1"), (EVE, "e1"), (BOB, "b2")]
    ran = await run_in_order(JobQueue(jobs_max=1), *added)
    assert ran == ["a1", "b1", "e1", "a2", "b2", "a3"]


async def test_a_full_queue_drops_jobs_of_the_user_who_has_the_most(
    caplog: pytest.LogCaptureFixture,
) -> None:
    added = [(ANN, "a1"), (ANN, "a2"), (ANN, "a3"), (BOB, "b1"), (ANN, "a4"), (BOB, "b2")]
    ran = await run_in_order(JobQueue(jobs_max=1, waiting_max=3), *added)
    assert ran == ["a1", "b1", "a2"]
    assert caplog.messages[-1] == "3 small generations were dropped"
