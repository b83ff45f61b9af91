"""Executes commands: decide on the known state, write the decision as one statement.

A command is decided on the state that this process has cached. The statement is guarded by the
version that was seen, so an outdated state costs a second read and nothing else. A refusal is
returned only from a state read for it. Commands for one chat are serialised; each runs to its end
even when its caller is gone, because a cancelled statement may have been committed.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from chatd.chats.domain.chat import ChatState, Facts, Message, NewMessage
from chatd.chats.domain.commands import (
    AnswerAction,
    Command,
    EditMessage,
    ExpireAction,
    Interrupt,
    PromoteQueuedMessage,
    RequestCompaction,
    RevertChat,
    SendMessage,
    SubmitToolResults,
    UndoRevert,
    WorkerCommand,
)
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.transitions import decide
from chatd.chats.domain.writes import AppendMessages, EnterBill, RecordDispatches, StoreResult
from chatd.chats.store.codec import choice_from_json
from chatd.chats.store.owner_claims import hold_running_claim, why_refused
from chatd.chats.store.rows import state_of
from chatd.chats.store.statements import SELECT_KEY, SELECT_STATE, decision_statement
from chatd.models.domain.profile import ModelChoice
from chatd.primitives.domain.errors import ChatError, ChatNotFound
from chatd.primitives.domain.ids import ChatId
from chatd.primitives.domain.requests import ClientKey
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.postgres import (
    ConflictRetries,
    Connection,
    DatabaseBusy,
    DatabaseUnavailable,
    Pool,
    PoolExhausted,
    StatementEnded,
)
from parley.tasks import ShieldedTasks

KNOWN_STATES_MAX = 10_000
MISSES_BEFORE_LOCK = 3
QUEUE_WAIT_S = 5.0
OUTAGE_WAIT_S = 30.0
OUTAGE_PAUSE_S = 0.25

T = TypeVar("T")

FactsOf = Callable[[ChatId, Command], Awaitable[Facts]]
# The time is that of the rows; None when the response of the database was lost.
Appended = Callable[[ChatState, ChatState, tuple[NewMessage, ...], datetime | None], None]


@dataclass(frozen=True, slots=True)
class Wrote:
    """A written state, with the model choice of its turn and its time, as far as known."""

    state: ChatState
    choice: ModelChoice | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """The outcome of a command.

    Attributes:
        state: The state after it.
        message: The message that it added to the history, as stored; None if it did something else,
            or if that is not known.
    """

    state: ChatState
    message: Message | None = None


class Unwritten(Enum):
    """Why a decision was not written."""

    REFUSED = "refused"  # The chat changed, the worker may not claim it, or a claim is lost.
    CUT_OFF = "cut off"  # The connection was lost, and it had not been committed.


class KnownStates:
    """The newest state of each chat that this process has seen; an LRU cache."""

    def __init__(self) -> None:
        self._states: BoundedCache[ChatId, ChatState] = BoundedCache(KNOWN_STATES_MAX)

    def get(self, chat_id: ChatId) -> ChatState | None:
        """Return the cached state, if any."""
        return self._states.get(chat_id)

    def learn(self, state: ChatState) -> None:
        """Cache a state that was written or read; an older one is ignored."""
        known = self._states.get(state.chat_id)
        if known is None or state.snapshot_version >= known.snapshot_version:
            self._states.put(state.chat_id, state)

    def forget(self, chat_id: ChatId) -> None:
        """Drop the cached state of a chat."""
        self._states.pop(chat_id)


class Applier:
    """Executes commands for all chats of this process; its exit waits for those under way.

    Attributes:
        known: The states that this process has seen.
        retries: Repeats what the database rolled back because of a deadlock.
    """

    def __init__(
        self,
        pool: Pool,
        *,
        facts_of: FactsOf,
        state_changed: Callable[[ChatState], None],
        appended: Appended,
        clock: Clock,
        jitter: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self._pool = pool
        self._facts_of = facts_of
        self._state_changed = state_changed
        self._appended = appended
        self._clock = clock
        self.known = KnownStates()
        self.retries = ConflictRetries(clock, jitter)
        self._locks: dict[ChatId, asyncio.Lock] = {}
        self._in_line: Counter[ChatId] = Counter()
        self._under_way = ShieldedTasks()

    async def __aenter__(self) -> Self:
        await self._under_way.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._under_way.__aexit__(kind, error, traceback)

    async def apply(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None = None
    ) -> ChatState:
        """Execute a command as `applied` does and return the state after it."""
        return (await self.applied(chat_id, command, client_key)).state

    async def applied(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None = None
    ) -> Applied:
        """Execute a command and return its outcome; the current state if it changes nothing.

        Raises:
            ChatError: The command is refused; see `domain.errors`.
            AgentsRefused: The chat of its claim was interrupted.
            StatementEnded: The database aborted the write, which changed nothing.
            DatabaseUnavailable: The database did not recover in time; read before repeating.
        """
        return await self._under_way.complete(self._apply(chat_id, command, client_key))

    async def _apply(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None
    ) -> Applied:
        lock = self._locks.setdefault(chat_id, asyncio.Lock())
        self._in_line[chat_id] += 1
        began_s = self._clock.monotonic()
        try:
            async with lock:
                waited_s = self._clock.monotonic() - began_s
                if waited_s > QUEUE_WAIT_S and not isinstance(command, WorkerCommand):
                    # The commands before waited for a database lock until they were refused; in a
                    # queue the last would wait for all of them.
                    raise DatabaseBusy(f"stood in line for {waited_s:.0f} s")
                return await self._apply_with_retries(chat_id, command, client_key)
        finally:
            self._in_line[chat_id] -= 1
            if not self._in_line[chat_id]:
                del self._in_line[chat_id], self._locks[chat_id]

    async def _apply_with_retries(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None
    ) -> Applied:
        """Execute a command; a worker's waits for a connection, as its model call is paid for."""
        deadline = self._clock.monotonic() + OUTAGE_WAIT_S
        while True:
            try:
                return await self._attempt(chat_id, command, client_key)
            except PoolExhausted:
                if not isinstance(command, WorkerCommand) or self._clock.monotonic() >= deadline:
                    raise

    async def _attempt(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None
    ) -> Applied:
        seen = self.known.get(chat_id)
        is_fresh = False
        for misses in range(MISSES_BEFORE_LOCK + 1):
            if misses == MISSES_BEFORE_LOCK:
                locked = partial(self._under_lock, chat_id, command, client_key)
                return await self.retries.run(locked)
            if seen is None:
                seen, is_fresh = await self._read(self._pool, chat_id), True
            decision = await self._decide(seen, command, is_fresh=is_fresh)
            if decision is None:
                seen, is_fresh = await self._read(self._pool, chat_id), True
                decision = await self._decide(seen, command, is_fresh=True)
                assert decision is not None  # A fresh state gives a decision or an error.
            if decision.state is seen:
                return Applied(seen)
            written = await self._write(self._pool, seen, decision, client_key)
            if isinstance(written, Wrote):
                return self._publish_write(seen, decision, written)
            fresh = await self._read(self._pool, chat_id)
            is_same = fresh.snapshot_version == seen.snapshot_version
            if written is Unwritten.REFUSED and is_same:
                # The chat did not change, so it was the claim that was refused.
                if decision.claim is not None:
                    raise await why_refused(self._pool, decision.claim)
                command = _without_claim(command)
            seen, is_fresh = fresh, True
        raise AssertionError("unreachable")

    async def _decide(
        self, seen: ChatState, command: Command, *, is_fresh: bool
    ) -> Decision | None:
        """Decide; None when the command would be refused and the state may be outdated."""
        facts = await self._facts_of(seen.chat_id, command)
        try:
            decision = decide(seen, command, facts)
        except ChatError:
            if is_fresh:
                raise
            return None
        return None if decision.state is seen and not is_fresh else decision

    async def _under_lock(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None
    ) -> Applied:
        """Decide under a row lock; for chats with many concurrent writers."""
        async with self._pool.acquire() as connection, connection.transaction():
            if isinstance(command, SendMessage | Interrupt) and command.claim is not None:
                await hold_running_claim(connection, command.claim)
            seen = await self._read(connection, chat_id, lock=" FOR UPDATE")
            decision = await self._decide(seen, command, is_fresh=True)
            assert decision is not None  # A fresh state gives a decision or an error.
            if decision.state is seen:
                return Applied(seen)
            written = await self._write(connection, seen, decision, client_key)
            if not isinstance(written, Wrote):
                decision = await self._decide(seen, _without_claim(command), is_fresh=True)
                assert decision is not None
                written = await self._write(connection, seen, decision, client_key)
        assert isinstance(written, Wrote)  # Locked, and nothing is claimed.
        return self._publish_write(seen, decision, written)

    # May run: checked by Ownership, process.
    async def _write(
        self,
        source: "Pool | Connection",
        seen: ChatState,
        decision: Decision,
        client_key: ClientKey | None,
    ) -> Wrote | Unwritten:
        """Write a decision, or return why it is not written."""
        statement = decision_statement(seen, decision, client_key)
        is_whole = source is self._pool  # Else the whole transaction has to be repeated.
        try:
            if is_whole:
                row = await self.retries.run(
                    lambda: self._pool.fetchrow(statement.text, *statement.arguments)
                )
            else:
                row = await source.fetchrow(statement.text, *statement.arguments)
        except StatementEnded:
            raise
        except DatabaseUnavailable:
            if not is_whole:
                raise
            return await self._outcome_after_outage(seen, decision, client_key)
        if row is None:
            return Unwritten.REFUSED
        state, deadline_at = decision.state, row["deadline_at"]
        if state.deadline_at != deadline_at:
            state = replace(state, deadline_at=deadline_at)
        return Wrote(state, choice_from_json(row["choice"]), row["changed_at"])

    async def _outcome_after_outage(
        self, seen: ChatState, decision: Decision, client_key: ClientKey | None
    ) -> Wrote | Unwritten:
        """Determine whether an interrupted write was committed.

        The version alone proves nothing, because another writer may have used it. The whole state
        proves it for a worker: it contains the epoch or the history that only this decision could
        make. Two requests of users may lead to the same state, so the key of this one must be
        stored too.
        """
        stored = await self._read_with_retries(
            seen.chat_id, lambda: self._read(self._pool, seen.chat_id)
        )
        if stored != replace(decision.state, deadline_at=stored.deadline_at):
            return Unwritten.CUT_OFF
        if client_key is None:
            return Wrote(stored)
        is_used = await self._read_with_retries(
            seen.chat_id, lambda: self._is_used(seen.chat_id, client_key)
        )
        return Wrote(stored) if is_used else Unwritten.CUT_OFF

    async def _read_with_retries(self, chat_id: ChatId, read: Callable[[], Awaitable[T]]) -> T:
        deadline = self._clock.monotonic() + OUTAGE_WAIT_S
        while True:
            try:
                return await read()
            except DatabaseUnavailable as error:
                if self._clock.monotonic() >= deadline:
                    self.known.forget(chat_id)
                    # Not the error itself: it may say that nothing was changed, of the read.
                    raise DatabaseUnavailable(error.reason) from error
                await self._clock.sleep(OUTAGE_PAUSE_S)

    async def _is_used(self, chat_id: ChatId, client_key: ClientKey) -> bool:
        return await self._pool.fetchval(SELECT_KEY, chat_id, client_key.key) is not None

    async def _read(
        self,
        source: "Pool | Connection",
        chat_id: ChatId,
        lock: str = "",
    ) -> ChatState:
        row = await source.fetchrow(SELECT_STATE + lock, chat_id)
        if row is None:
            self.known.forget(chat_id)
            raise ChatNotFound(chat_id)
        state = state_of(row)
        self.known.learn(state)
        return state

    def _publish_write(self, seen: ChatState, decision: Decision, wrote: Wrote) -> Applied:
        written = wrote.state
        self.known.learn(written)
        stored: Message | None = None
        writes = tuple(each for each in decision.writes if not isinstance(each, EnterBill))
        match writes:
            case (AppendMessages((NewMessage(choice=ModelChoice()) as message,)),):
                # Without the stored choice the message has to be read.
                if wrote.choice is not None:
                    message = replace(message, choice=wrote.choice)
                    self._appended(seen, written, (message,), wrote.at)
                    if wrote.at is not None:
                        stored = message.stored(
                            seen.next_message_id, written.snapshot_version, wrote.at
                        )
            case (AppendMessages(messages),) | (
                AppendMessages(messages),
                RecordDispatches() | StoreResult(),
            ):
                self._appended(seen, written, messages, wrote.at)
        self._state_changed(written)
        return Applied(written, stored)


def _without_claim(command: Command) -> Command:
    """Return the command for a worker that may not claim: the chat waits for a sweep."""
    match command:
        case (
            SendMessage()
            | EditMessage()
            | RevertChat()
            | UndoRevert()
            | PromoteQueuedMessage()
            | Interrupt()
            | SubmitToolResults()
            | RequestCompaction()
            | AnswerAction()
            | ExpireAction()
        ):
            return replace(command, claimed_by=None)
        case _:
            return command
