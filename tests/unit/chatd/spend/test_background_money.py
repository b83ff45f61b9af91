"""What is written and made behind the turns: late bills and small jobs."""

import asyncio

import pytest

from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.engine.late_bills import ATTEMPTS_MAX, DeferredBills
from chatd.titles.engine.jobs import JobQueue
from parley.clock import FakeClock
from parley.postgres import DatabaseUnavailable

BILL = Bill(CallPurpose.TURN, CallOutcome.ABORTED, ModelUse("m", 1))
ENTRY = LedgerEntry(ChatId("c"), 2, 1, BILL)
ANN = OwnerId("ann")


class Ledger:
    """Fails some times, then takes entries."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)
        self.entries: list[tuple[LedgerEntry, OwnerId]] = []

    async def enter(self, entry: LedgerEntry, owner_id: OwnerId) -> None:
        if self._errors:
            raise self._errors.pop(0)
        self.entries.append((entry, owner_id))


async def test_a_late_bill_is_entered_when_the_database_is_back() -> None:
    ledger, clock = Ledger(DatabaseUnavailable("away")), FakeClock()
    bills = DeferredBills(ledger, clock)
    bills.add(ENTRY, ANN)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(bills.run())
        clock.advance(await clock.until_sleeping())
        await bills.flushed_within(5)
        running.cancel()
    assert ledger.entries == [(ENTRY, ANN)]


async def test_a_bill_whose_caller_waits_is_entered_before_it_goes_on() -> None:
    ledger, clock = Ledger(DatabaseUnavailable("away")), FakeClock()
    bills = DeferredBills(ledger, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        entering = group.create_task(bills.enter(ENTRY, ANN))
        pause_s = await clock.until_sleeping()
        assert not entering.done()
        clock.advance(pause_s)
    assert ledger.entries == [(ENTRY, ANN)]


async def test_a_bill_whose_caller_is_cancelled_is_entered_in_the_background() -> None:
    ledger, clock = Ledger(DatabaseUnavailable("away")), FakeClock()
    bills = DeferredBills(ledger, clock)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        entering = group.create_task(bills.enter(ENTRY, ANN))
        await clock.until_sleeping()
        entering.cancel()
        running = group.create_task(bills.run())
        await asyncio.wait((entering,))
        await bills.flushed_within(5)
        running.cancel()
    assert ledger.entries == [(ENTRY, ANN)]


async def test_a_bill_that_cannot_be_entered_is_told_and_the_next_one_is_not_held_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    ledger, clock = Ledger(*[DatabaseUnavailable("away")] * ATTEMPTS_MAX, ValueError()), FakeClock()
    bills = DeferredBills(ledger, clock)
    for _ in range(3):
        bills.add(ENTRY, ANN)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(bills.run())
        for _ in range(ATTEMPTS_MAX - 1):
            clock.advance(await clock.until_sleeping())
        await bills.flushed_within(5)
        running.cancel()
    assert ledger.entries == [(ENTRY, ANN)]
    assert caplog.text.count("a bill is lost") == 2


async def test_small_jobs_run_a_few_at_a_time_and_too_many_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    jobs = JobQueue(jobs_max=2, waiting_max=3)
    under_way: list[int] = []
    most: list[int] = []
    go_on = asyncio.Event()

    def job(number: int) -> None:
        async def work() -> None:
            under_way.append(number)
            most.append(len(under_way))
            await go_on.wait()
            under_way.remove(number)

        jobs.add(ANN, work)

    for number in range(5):
        job(number)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(jobs.run())
        while len(under_way) < 2:
            await asyncio.wait((running,), timeout=0)
        go_on.set()
        await jobs.done()
        running.cancel()
    assert (len(most), max(most)) == (3, 2)
    assert caplog.messages == [
        "small generations are dropped because too many wait",
        "2 small generations were dropped",
    ]


async def test_a_job_that_crashes_leaves_the_others_alone() -> None:
    jobs = JobQueue(jobs_max=1)
    done = asyncio.Event()

    async def crash() -> None:
        raise ValueError("oops")

    async def work() -> None:
        done.set()

    jobs.add(ANN, crash)
    jobs.add(ANN, work)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        running = group.create_task(jobs.run())
        await done.wait()
        running.cancel()
    assert done.is_set()
