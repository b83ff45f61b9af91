"""Lets chats go on towards their goals: checks after each turn, and sends the next message.

Every process looks; a claim lets one of them work on a goal. A check that takes long is waited for
in pieces: the request that starts it is repeated and finds the same process.
"""

import asyncio
import logging
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Final, NoReturn, Protocol

from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.goals.domain.goal import (
    DEFECT,
    CheckResult,
    Goal,
    GoalState,
    RestingChat,
    Verdict,
    after_check,
    after_message,
    after_postponement,
    after_refusal,
    after_verdict,
    before_check,
    before_judgement,
    check_id,
    message_id,
    next_message,
    within_budget,
)
from chatd.goals.store.goals import ClaimedGoal, PostgresGoals
from chatd.primitives.domain.ids import OwnerId
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

EVERY_S: Final = 2.0
RARELY_S: Final = 30.0
#: Longer than a check is waited for and a judge is asked, one after the other.
CLAIM_FOR: Final = timedelta(seconds=180)
SOON: Final = timedelta(seconds=1)
#: When something that was away is asked for again.
LATER: Final = timedelta(seconds=30)
GOALS_MAX: Final = 8
#: Of one owner, so that checks that take long leave places to the goals of others.
GOALS_PER_OWNER_MAX: Final = 4

logger = logging.getLogger(__name__)


class GoalActions(Protocol):
    """What is done for the owners of goals."""

    async def send(self, goal: Goal, text: str, request_id: str) -> None:
        """Send a message to the chat once, however often it is called.

        Raises:
            CallRefused: It was refused.
            CallPostponed: Something that it needs is away.
        """
        ...

    async def check(self, goal: Goal, request_id: str) -> CheckResult | None:
        """Run the check once, however often it is called; None while it still runs.

        Raises:
            CallRefused: It cannot be run.
            CallPostponed: Something that it needs is away.
        """
        ...


class Judge(Protocol):
    """Says whether goals are reached."""

    async def judge(self, goal: Goal, chat: RestingChat) -> Verdict:
        """Return a verdict.

        Raises:
            CallRefused: There is none.
            CallPostponed: Something that it needs is away.
        """
        ...


class GoalPursuit:
    """Works on goals.

    Args:
        store: The goals.
        actions: Checks and sends.
        judge: Judges goals that name a model for it.
        clock: Time between two rounds.
    """

    def __init__(
        self, store: PostgresGoals, actions: GoalActions, judge: Judge, clock: Clock
    ) -> None:
        self._store = store
        self._actions = actions
        self._judge = judge
        self._clock = clock
        self._is_changed = asyncio.Event()
        self._working: Counter[OwnerId] = Counter()

    def poke(self) -> None:
        """Look soon: a goal was set or resumed."""
        self._is_changed.set()

    async def run(self) -> NoReturn:
        """Make rounds until cancelled; a goal that takes long does not hold up the others."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._is_changed.clear()
                try:
                    await self._begin_some(tasks)
                    wait_s = EVERY_S if await self._store.are_there_any() else RARELY_S
                except DatabaseUnavailable as outage:
                    logger.warning("no goals are worked on: %s", outage)
                    wait_s = RARELY_S
                await is_set_within(self._is_changed, wait_s, self._clock)

    async def make_round(self) -> None:
        """Work on goals whose chats are at rest, and return when this is done."""
        async with asyncio.TaskGroup() as tasks:
            await self._begin_some(tasks)

    async def _begin_some(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to work on as many goals as there are free places."""
        while self._working.total() < GOALS_MAX:
            busy = [each for each, count in self._working.items() if count >= GOALS_PER_OWNER_MAX]
            claimed = await self._store.claim(CLAIM_FOR, busy)
            if claimed is None:
                return
            owner_id = claimed.goal.owner.id
            self._working[owner_id] += 1
            work = tasks.create_task(self._advance(claimed))
            work.add_done_callback(partial(self._release, owner_id))

    def _release(self, owner_id: OwnerId, _: asyncio.Task[None]) -> None:
        self._working[owner_id] -= 1
        if not self._working[owner_id]:
            del self._working[owner_id]

    async def _advance(self, claimed: ClaimedGoal) -> None:
        """Work on a goal; neither a defect nor an outage ends the work on the others."""
        goal = claimed.goal
        try:
            after, again_in = await self._worked_on(claimed)
            await self._store.store(goal, after, again_in)
        except DatabaseUnavailable as outage:
            logger.warning("a goal waits: %s", outage, extra={"chat_id": goal.chat_id})
        except Exception:
            logger.exception("a goal failed unexpectedly", extra={"chat_id": goal.chat_id})
            await self._halt(goal)

    async def _halt(self, goal: Goal) -> None:
        """Pause a goal after a defect; if it cannot be stored, another round comes to it."""
        try:
            await self._store.store(goal, after_refusal(goal, DEFECT), SOON)
        except DatabaseUnavailable as outage:
            logger.warning("a goal is not paused: %s", outage, extra={"chat_id": goal.chat_id})

    async def _worked_on(self, claimed: ClaimedGoal) -> tuple[Goal, timedelta]:
        """Return what becomes of a goal, and when to look at it again."""
        goal = before_check(claimed.goal, claimed.chat)
        try:
            if goal.state is GoalState.ACTIVE:
                goal = await self._checked_and_sent(goal, claimed)
        except CallPostponed as postponed:
            logger.info("a goal waits: %s", postponed, extra={"chat_id": goal.chat_id})
            return after_postponement(goal, str(postponed), claimed.now), LATER
        except CallRefused as refusal:
            goal = after_refusal(goal, refusal.reason)
        return goal, SOON

    async def _checked_and_sent(self, goal: Goal, claimed: ClaimedGoal) -> Goal:
        result: CheckResult | Verdict | None = None
        if goal.turns_count == 0:
            goal = within_budget(goal, claimed.now)
        else:
            goal, result = await self._found_out(goal, claimed)
            if result is None:
                return goal
        if goal.state is not GoalState.ACTIVE:
            return goal
        if not await self._store.is_current(goal, claimed.chat):
            # It was paused or ended during the check, or the chat goes on without it.
            return goal
        await self._actions.send(goal, next_message(goal, result), message_id(goal))
        return after_message(goal)

    async def _found_out(
        self, goal: Goal, claimed: ClaimedGoal
    ) -> tuple[Goal, CheckResult | Verdict | None]:
        """Check a goal, then let its judge decide; nothing is found out while the check runs."""
        if goal.check_command:
            result = await self._actions.check(goal, check_id(goal, claimed.chat))
            if result is None:
                return goal, None
            goal = after_check(goal, result, claimed.now)
            if goal.state is not GoalState.ACTIVE or not result.is_passed:
                return goal, result
        else:
            goal = before_judgement(goal)
            if goal.state is not GoalState.ACTIVE:
                return goal, None
        verdict = await self._judge.judge(goal, claimed.chat)
        return after_verdict(goal, verdict, claimed.now), verdict
