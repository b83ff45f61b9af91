"""Acknowledges executions whose results are stored, so that executors can drop them.

Sent in batches behind the commits, by a loop: no turn waits for it and nothing is written for it. A
call is remembered when it is passed to its executor, and acknowledged after a committed state in
which it is no longer pending. All of this is in memory: after a crash the rest is not sent again,
and the executors delete those entries by their age.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from chatd.chats.domain.chat import ChatState
from chatd.content.domain.tools import Execution, Executor, ExecutorUnreachable
from chatd.primitives.domain.ids import ChatId, ExecutionId
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.tasks import first_of

SEND_EVERY_S: Final = 5.0
#: How long an unreachable executor is tried.
GIVE_UP_S: Final = 600.0
#: How long a stopping process sends.
STOP_S: Final = 2.0
CHATS_MAX: Final = 4096
BATCH_MAX: Final = 500
#: Of one journal; more are not acknowledged.
WAITING_MAX: Final = 20_000

logger = logging.getLogger(__name__)


class Acknowledger(Protocol):
    """An executor that keeps results until they are acknowledged."""

    async def acknowledge(self, generation: str, execution_ids: Sequence[ExecutionId]) -> None:
        """Acknowledge executions that were dispatched to a journal; others are skipped.

        Raises:
            ExecutorUnreachable: no executor could be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class JournalKey:
    """A journal of an executor."""

    executor: Executor
    generation: str


@dataclass(slots=True)
class _OpenChat:
    """The calls of a chat that have no result in its history yet, as of a version."""

    version: int
    journals: dict[ExecutionId, JournalKey] = field(default_factory=dict)


@dataclass(slots=True)
class _Waiting:
    """Executions to acknowledge to one journal."""

    since_s: float
    execution_ids: list[ExecutionId] = field(default_factory=list)


class Acknowledgements:
    """Remembers which executions to acknowledge, and sends them.

    Args:
        acknowledgers: The executors with a journal.
        clock: The clock.
    """

    def __init__(self, acknowledgers: Mapping[Executor, Acknowledger], clock: Clock) -> None:
        self._acknowledgers = acknowledgers
        self._clock = clock
        self._open: BoundedCache[ChatId, _OpenChat] = BoundedCache(CHATS_MAX)
        self._waiting: dict[JournalKey, _Waiting] = {}
        self._is_needed = asyncio.Event()

    def dispatched(self, execution: Execution) -> None:
        """Remember a call that is passed to its executor; never waits."""
        dispatch = execution.dispatch
        chat = self._open.get(execution.chat_id)
        if chat is not None and dispatch.executor in self._acknowledgers:
            journal = JournalKey(dispatch.executor, dispatch.journal_generation)
            chat.journals[dispatch.execution_id] = journal

    def state_changed(self, state: ChatState) -> None:
        """Apply a committed state: calls that are no longer pending are acknowledged soon."""
        chat = self._open.get(state.chat_id)
        if chat is None:
            if state.pending:
                self._open.put(state.chat_id, _OpenChat(state.snapshot_version))
            return
        if state.snapshot_version < chat.version:
            return
        chat.version = state.snapshot_version
        pending = {call.execution_id for call in state.pending}
        for execution_id in [each for each in chat.journals if each not in pending]:
            self._stored(chat.journals.pop(execution_id), execution_id)
        if not pending:
            self._open.pop(state.chat_id)

    async def run(self) -> None:
        """Send until cancelled."""
        while True:
            await self._is_needed.wait()
            await self._clock.sleep(SEND_EVERY_S)
            await self.send()

    async def send(self) -> None:
        """Send all that is waiting; an unreachable executor's part waits for the next time."""
        self._is_needed.clear()
        waiting, self._waiting = self._waiting, {}
        for journal, batch in waiting.items():
            ids = batch.execution_ids
            try:
                while ids:
                    acknowledger = self._acknowledgers[journal.executor]
                    await acknowledger.acknowledge(journal.generation, ids[:BATCH_MAX])
                    del ids[:BATCH_MAX]
            except ExecutorUnreachable as error:
                self._keep(journal, batch, error)

    async def flush(self) -> None:
        """Send all that is waiting for a short time, because this process stops."""

        async def give_up() -> None:
            await self._clock.sleep(STOP_S)

        await first_of(self.send(), give_up)

    def _stored(self, journal: JournalKey, execution_id: ExecutionId) -> None:
        batch = self._waiting.setdefault(journal, _Waiting(self._clock.monotonic()))
        if len(batch.execution_ids) < WAITING_MAX:
            batch.execution_ids.append(execution_id)
        self._is_needed.set()

    def _keep(self, journal: JournalKey, batch: _Waiting, error: ExecutorUnreachable) -> None:
        """Send a batch again later, unless this was tried for too long."""
        if self._clock.monotonic() - batch.since_s >= GIVE_UP_S:
            count = len(batch.execution_ids)
            logger.warning("%d executions were not acknowledged: %s", count, error)
            return
        newer = self._waiting.get(journal)
        if newer is not None:
            batch.execution_ids += newer.execution_ids[: WAITING_MAX - len(batch.execution_ids)]
        self._waiting[journal] = batch
        self._is_needed.set()
