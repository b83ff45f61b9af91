"""Sends the messages of schedules that are due, and records how the turns ended.

Every process looks; a claim in the database lets one of them send a run. A process that ends while
it sends leaves a claim that expires, and the next one sends under the same request id.
"""

import asyncio
import logging
from datetime import timedelta
from functools import partial
from typing import Final, NoReturn, Protocol

from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.primitives.domain.ids import ChatId
from chatd.schedules.domain.runs import (
    DEFECT,
    SENT_UNKNOWN,
    TRY_FOR,
    Due,
    after_completion,
    after_failure,
    after_miss,
    after_refusal,
    after_sending,
    due,
    request_id,
)
from chatd.schedules.domain.schedule import Run, RunOutcome, Schedule
from chatd.schedules.store.due_runs import DueRun, EndedRun, PostgresDueRuns
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

#: How often is looked without a run that is due, and while turns of runs are open.
RARELY_S: Final = 30.0
OPEN_S: Final = 5.0
SOONEST_S: Final = 0.2
CLAIM_FOR: Final = timedelta(seconds=60)
ENDED_MAX: Final = 100
#: A run whose sending takes long does not hold up others.
SENT_AT_ONCE_MAX: Final = 8

logger = logging.getLogger(__name__)


class Sender(Protocol):
    """Sends messages for the owners of schedules."""

    async def send(self, schedule: Schedule, request_id: str) -> ChatId:
        """Send the message of a run once, however often it is called; return its chat.

        Raises:
            CallRefused: It was refused.
            CallPostponed: Something that it needs is away.
        """
        ...


class ScheduleRuns:
    """Runs schedules.

    Args:
        store: The runs that are due.
        sender: Sends their messages.
        clock: Time between two rounds.
    """

    def __init__(self, store: PostgresDueRuns, sender: Sender, clock: Clock) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._is_changed = asyncio.Event()

    def poke(self) -> None:
        """Look soon: a schedule was made or resumed."""
        self._is_changed.set()

    async def run(self) -> NoReturn:
        """Make rounds until cancelled."""
        while True:
            self._is_changed.clear()
            try:
                await self.make_round()
                wait_s = await self._wait_s()
            except* DatabaseUnavailable as outages:
                logger.warning("no schedules are run: %s", outages.exceptions[0])
                wait_s = RARELY_S
            await is_set_within(self._is_changed, wait_s, self._clock)

    async def make_round(self) -> None:
        """Send all that is due, some at once, and record the turns that ended."""
        free = asyncio.Semaphore(SENT_AT_ONCE_MAX)
        async with asyncio.TaskGroup() as tasks:
            while True:
                await free.acquire()
                found = await self._store.claim(CLAIM_FOR)
                if found is None:
                    break
                sending = tasks.create_task(self._settle_alone(found))
                sending.add_done_callback(lambda _: free.release())
        for ended in await self._store.ended(ENDED_MAX):
            await self._store.end(ended, partial(_after_turn, ended=ended))

    async def _wait_s(self) -> float:
        outlook = await self._store.outlook()
        limit_s = OPEN_S if outlook.is_open else RARELY_S
        return limit_s if outlook.wait_s is None else min(limit_s, max(SOONEST_S, outlook.wait_s))

    async def _settle_alone(self, found: DueRun) -> None:
        """Settle a run; neither a defect nor an outage ends the work on the others."""
        shown = {"schedule_id": found.schedule.id}
        try:
            try:
                await self._settle(found)
            except DatabaseUnavailable:
                raise
            except Exception:
                logger.exception("a scheduled run failed unexpectedly", extra=shown)
                await self._fail(found)
        except DatabaseUnavailable as outage:
            logger.warning("a scheduled run waits: %s", outage, extra=shown)

    async def _fail(self, found: DueRun) -> None:
        """Record that a run failed; pause its schedule if it has no next time that is known."""
        try:
            await self._refuse(found, CallRefused(DEFECT))
        except DatabaseUnavailable:
            raise
        except Exception:
            logger.exception("a schedule has no next run", extra={"schedule_id": found.schedule.id})
            after = partial(after_failure, error=DEFECT, is_lasting=True)
            await self._record(found, RunOutcome.FAILED, after, error=DEFECT)

    async def _settle(self, found: DueRun) -> None:
        """Send, miss or give up a run, and record it; one that is postponed keeps its claim."""
        now = found.now
        match due(found.schedule, found.planned_at, found.begun_at, now):
            case Due.SEND:
                if await self._store.begin(found):
                    await self._send(found)
            case Due.MISS:
                await self._record(found, RunOutcome.MISSED, partial(after_miss, now=now))
            case Due.GIVE_UP:
                await self._refuse(found, CallRefused(SENT_UNKNOWN))

    async def _send(self, found: DueRun) -> None:
        try:
            chat_id = await self._sender.send(
                found.schedule, request_id(found.schedule, found.planned_at)
            )
        except CallPostponed as postponed:
            if found.begun_at is not None and found.now - found.begun_at > TRY_FOR:
                await self._refuse(found, CallRefused(str(postponed)))
        except CallRefused as refusal:
            await self._refuse(found, refusal)
        else:
            await self._record(
                found,
                RunOutcome.STARTED,
                partial(after_sending, now=found.now),
                chat_id=chat_id,
            )

    async def _refuse(self, found: DueRun, refusal: CallRefused) -> None:
        logger.warning(
            "a scheduled run failed: %s", refusal, extra={"schedule_id": found.schedule.id}
        )
        after = partial(
            after_refusal, error=refusal.reason, now=found.now, is_lasting=refusal.is_lasting
        )
        await self._record(found, RunOutcome.FAILED, after, error=refusal.reason)

    async def _record(
        self,
        found: DueRun,
        outcome: RunOutcome,
        decide: "partial[Schedule]",
        *,
        chat_id: str = "",
        error: str = "",
    ) -> None:
        run = Run(found.planned_at, found.now, outcome, chat_id, error)
        await self._store.record(found.schedule.id, run, decide)


def _after_turn(schedule: Schedule, ended: EndedRun) -> Schedule:
    match ended.outcome:
        case RunOutcome.FAILED:
            return after_failure(schedule, ended.error)
        case RunOutcome.COMPLETED:
            return after_completion(schedule)
        case _:
            return schedule
