"""Wakes chats by their monitors: looks at processes, and sends the message of one that is due.

Every process looks; a claim lets one of them look at a monitor. A look waits for a moment at the
node of the workspace, which answers at once when there is a cause. Between two looks nothing is
held: no slot of a worker, no lease and no connection.
"""

import asyncio
import logging
from datetime import timedelta
from typing import Final, NoReturn, Protocol

from chatd.chats.domain.owner_calls import CallPostponed, CallRefused
from chatd.monitors.domain.monitor import (
    DEFECT,
    Look,
    Monitor,
    MonitorCause,
    MonitorState,
    WatchingChat,
    after_look,
    after_postponement,
    ended,
    of_chat,
    wake_id,
    wake_message,
    woken,
)
from chatd.monitors.store.monitors import ClaimedMonitor, PostgresMonitors
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

EVERY_S: Final = 1.0
#: Between two rounds without any monitor.
RARELY_S: Final = 5.0
CLAIM_FOR: Final = timedelta(seconds=60)
AT_ONCE: Final = timedelta(0)
#: When something that was away is asked for again.
LATER: Final = timedelta(seconds=10)
MONITORS_MAX: Final = 32

logger = logging.getLogger(__name__)


class MonitorActions(Protocol):
    """What is done for the owners of monitors."""

    async def look(self, monitor: Monitor) -> Look:
        """Wait for the process of a monitor for a moment.

        Raises:
            CallRefused: It cannot be watched any more.
            CallPostponed: Something that it needs is away.
        """
        ...

    async def wake(self, monitor: Monitor, text: str, request_id: str) -> None:
        """Send a message to the chat once, however often it is called.

        Raises:
            CallRefused: It was refused.
            CallPostponed: Something that it needs is away.
        """
        ...


class MonitorRounds:
    """Looks at monitors.

    Args:
        store: The monitors.
        actions: Looks and wakes.
        clock: Time between two rounds.
    """

    def __init__(self, store: PostgresMonitors, actions: MonitorActions, clock: Clock) -> None:
        self._store = store
        self._actions = actions
        self._clock = clock
        self._working: set[asyncio.Task[None]] = set()

    async def run(self) -> NoReturn:
        """Make rounds until cancelled; a look that takes long does not hold up the others."""
        async with asyncio.TaskGroup() as tasks:
            while True:
                wait_s = RARELY_S
                try:
                    if await self._store.are_there_any():
                        await self._begin_some(tasks)
                        wait_s = EVERY_S
                except DatabaseUnavailable as outage:
                    logger.warning("no monitors are looked at: %s", outage)
                await self._clock.sleep(wait_s)

    async def make_round(self) -> None:
        """Look at monitors and return when this is done; one that is due wakes in the next."""
        async with asyncio.TaskGroup() as tasks:
            await self._begin_some(tasks)

    async def _begin_some(self, tasks: asyncio.TaskGroup) -> None:
        """Begin to look at as many monitors as there are free places."""
        free = MONITORS_MAX - len(self._working)
        for claimed in await self._store.claim(CLAIM_FOR, free) if free else ():
            work = tasks.create_task(self._advance(claimed))
            self._working.add(work)
            work.add_done_callback(self._working.discard)

    async def _advance(self, claimed: ClaimedMonitor) -> None:
        """Work on a monitor; neither a defect nor an outage ends the work on the others."""
        monitor = claimed.monitor
        shown = {"chat_id": monitor.chat_id}
        try:
            try:
                after, again_in = await self._worked_on(claimed)
            except DatabaseUnavailable:
                raise
            except Exception:
                logger.exception("a monitor failed unexpectedly", extra=shown)
                after, again_in = ended(monitor, DEFECT), AT_ONCE
            await self._store.store(monitor, after, again_in)
        except DatabaseUnavailable as outage:
            logger.warning("a monitor waits: %s", outage, extra=shown)

    async def _worked_on(self, claimed: ClaimedMonitor) -> tuple[Monitor, timedelta]:
        """Return what becomes of a monitor, and when to look at it again."""
        monitor = of_chat(claimed.monitor, claimed.chat)
        try:
            match monitor.state:
                case MonitorState.WAITING:
                    return after_look(monitor, await self._looked(monitor), claimed.now), AT_ONCE
                case MonitorState.DUE:
                    return await self._woken(monitor, claimed.chat), AT_ONCE
                case _:
                    return monitor, AT_ONCE
        except CallPostponed as postponed:
            logger.info("a monitor waits: %s", postponed, extra={"chat_id": monitor.chat_id})
            return after_postponement(monitor, claimed.now), LATER

    async def _looked(self, monitor: Monitor) -> Look:
        try:
            return await self._actions.look(monitor)
        except CallRefused as refusal:
            return Look(monitor.cursor, MonitorCause.LOST, refusal.reason)

    async def _woken(self, monitor: Monitor, chat: WatchingChat) -> Monitor:
        if not await self._store.is_current(monitor, chat):
            return monitor  # It was cancelled, or is still due when the chat is at rest again.
        try:
            await self._actions.wake(monitor, wake_message(monitor), wake_id(monitor))
        except CallRefused as refusal:
            return ended(monitor, refusal.reason)
        return woken(monitor)
