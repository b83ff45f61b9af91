"""The database as one process reaches it: the real rules of writing, over lines that break."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from chatd.chats.domain.agents import AgentWait
from chatd.chats.domain.chat import NO_FACTS, ChatState, Claimed, Facts, Message
from chatd.chats.domain.commands import (
    ChangeQueuedMessage,
    Command,
    DeleteQueuedMessage,
    EditMessage,
    PromoteQueuedMessage,
    RequestCompaction,
    RevertChat,
    UndoRevert,
)
from chatd.chats.domain.pieces import Chunk, Piece
from chatd.chats.domain.state_changes import Decision
from chatd.chats.domain.transitions import decide
from chatd.chats.store.applying import Appended, Applied, Applier, Unwritten, Wrote
from chatd.content.domain.tools import StoredExecution
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, MessageId, WorkerId
from chatd.primitives.domain.requests import ClientKey
from chatd.workers.domain import DueAction, NamedChat, SweepLimits, UserLoad
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from support.simulation.database import KeyUsed, SimulatedDatabase, Written
from support.simulation.loop import Host
from support.simulation.mischief import Mischief, Twist, Victim
from support.simulation.network import Network
from support.simulation.rules import Author

T = TypeVar("T")

DOWN = Twist(is_lost=True)
NEEDS_FACTS = (
    DeleteQueuedMessage,
    ChangeQueuedMessage,
    PromoteQueuedMessage,
    EditMessage,
    RequestCompaction,
    RevertChat,
    UndoRevert,
)


class Line:
    """A process's connections to the database."""

    def __init__(
        self,
        database: SimulatedDatabase,
        network: Network,
        host: Host,
        *,
        victim: Victim,
        mischief: Mischief,
    ) -> None:
        self.database = database
        self.host = host
        self._network = network
        self._victim = victim
        self._mischief = mischief

    async def ask(self, statement: Callable[[], T]) -> T:
        """Have a statement executed.

        Raises:
            DatabaseUnavailable: nobody answered; it may have been executed.
        """
        twist = DOWN if self.database.is_down else self._mischief.of_read(self._victim)
        return await self._network.ask(self.host, statement, _cut, twist=twist)

    async def write(
        self, seen: ChatState, decision: Decision, key: str | None, author: Author
    ) -> ChatState | None:
        """Have a decision written.

        Raises:
            DatabaseUnavailable: nobody answered; it may have been written.
        """
        database, mischief = self.database, self._mischief
        is_down = database.is_down
        return await self._network.ask(
            self.host,
            lambda: database.write(seen, decision, key, author),
            _cut,
            twist=DOWN if is_down else mischief.of_write(self._victim, seen, author),
            late=lambda: database.witness.disown(seen.chat_id),
        )


def _cut() -> Exception:
    return DatabaseUnavailable("the line was cut")


class ConnectedApplier(Applier):
    """The real one, with statements of the simulated database.

    Attributes:
        gave_up: Chats of which it did not learn what became of a write.
    """

    def __init__(
        self,
        line: Line,
        worker_id: WorkerId,
        *,
        state_changed: Callable[[ChatState], None],
        appended: Appended,
        clock: Clock,
    ) -> None:
        super().__init__(
            cast(Any, None),
            facts_of=self._facts,
            state_changed=state_changed,
            appended=appended,
            clock=clock,
        )
        self._line = line
        self._worker_id = worker_id
        self._deciding: dict[ChatId, Author] = {}
        self.gave_up: set[ChatId] = set()

    async def apply(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None = None
    ) -> ChatState:
        """Execute a command; a refusal must have been right at some moment meanwhile."""
        witness = self._line.database.witness
        began = len(witness.states[chat_id]) - 1
        try:
            return await super().apply(chat_id, command, client_key)
        except ChatError as refusal:
            states = witness.states[chat_id][began:]
            is_right = any(_refuses(state, command, type(refusal)) for state in states)
            witness.require(is_right, f"{command} was refused: {refusal}", states)
            raise

    async def _decide(
        self, seen: ChatState, command: Command, *, is_fresh: bool
    ) -> Decision | None:
        self._deciding[seen.chat_id] = Author(self._worker_id, command)
        return await super()._decide(seen, command, is_fresh=is_fresh)

    async def _read_with_retries(self, chat_id: ChatId, read: Callable[[], Awaitable[T]]) -> T:
        try:
            return await super()._read_with_retries(chat_id, read)
        except DatabaseUnavailable:
            self.gave_up.add(chat_id)
            raise

    async def _facts(self, chat_id: ChatId, command: Command) -> Facts:
        if not isinstance(command, NEEDS_FACTS):
            return NO_FACTS
        return await self._line.ask(lambda: self._line.database.facts(chat_id, command))

    async def _read(self, source: object, chat_id: ChatId, lock: str = "") -> ChatState:
        database = self._line.database
        state = await self._line.ask(lambda: database.read(database.chats.state(chat_id)))
        self.known.learn(state)
        return state

    async def _write(
        self, source: object, seen: ChatState, decision: Decision, client_key: ClientKey | None
    ) -> Wrote | Unwritten:
        key = None if client_key is None else client_key.key
        author = self._deciding[seen.chat_id]
        try:
            state = await self._line.write(seen, decision, key, author)
        except DatabaseUnavailable:
            return await self._outcome_after_outage(seen, decision, client_key)
        return Unwritten.REFUSED if state is None else Wrote(state)

    async def _is_used(self, chat_id: ChatId, client_key: ClientKey) -> bool:
        return await self._line.ask(lambda: self._line.database.is_used(chat_id, client_key.key))

    async def _under_lock(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None
    ) -> Applied:
        key = None if client_key is None else client_key.key
        author = Author(self._worker_id, command)
        try:
            done: Written = await self._line.ask(
                lambda: self._line.database.write_locked(chat_id, key, author)
            )
        except DatabaseUnavailable:
            self.gave_up.add(chat_id)
            raise
        if done.state is None:
            return Applied(done.seen)
        return self._publish_write(done.seen, done.decision, Wrote(done.state))


def _refuses(state: ChatState, command: Command, kind: type[ChatError]) -> bool:
    """Return whether a command would be refused like this; what needs facts nobody can tell."""
    if isinstance(command, NEEDS_FACTS):
        return True
    try:
        decide(state, command)
    except ChatError as refusal:
        return type(refusal) is kind
    return False


class ConnectedChats:
    """Chats, as the engine of one process knows them."""

    def __init__(
        self, line: Line, applier: ConnectedApplier, state_changed: Callable[[ChatState], None]
    ) -> None:
        self._line = line
        self._applier = applier
        self._state_changed = state_changed

    async def apply(self, chat_id: ChatId, command: Command) -> ChatState:
        """Execute a command."""
        self._line.host.require_life()
        return await self._applier.apply(chat_id, command)

    async def once(self, chat_id: ChatId, command: Command, key: str) -> ChatState | None:
        """Execute a user's command unless its key was used before; return None then."""
        self._line.host.require_life()
        database = self._line.database
        state: ChatState | None = None
        try:
            state = await self._applier.apply(chat_id, command, ClientKey(key, b""))
        except (ChatError, KeyUsed):
            if not await self._line.ask(lambda: database.is_used(chat_id, key)):
                raise
        return state

    async def is_used(self, chat_id: ChatId, key: str) -> bool:
        """Return whether a key was stored."""
        return await self._line.ask(lambda: self._line.database.is_used(chat_id, key))

    def publish_state(self, state: ChatState) -> None:
        """Take a state that was written by another way."""
        self._applier.known.learn(state)
        self._state_changed(state)

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the present state."""
        database = self._line.database
        return await self._line.ask(lambda: database.read(database.chats.state(chat_id)))

    async def history(self, chat_id: ChatId, after_revision: int = 0) -> tuple[Message, ...]:
        """Return the messages."""
        database = self._line.database
        return await self._line.ask(
            lambda: database.read(database.chats.history(chat_id, after_revision))
        )

    async def executions(
        self, chat_id: ChatId, message_id: MessageId
    ) -> tuple[StoredExecution, ...]:
        """Return the dispatched calls of a message."""
        database = self._line.database
        return await self._line.ask(
            lambda: database.read(database.chats.executions(chat_id, message_id))
        )


class ConnectedWaits:
    """Waits for other chats."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def waits(self, waits_max: int) -> tuple[AgentWait, ...]:
        """Return calls that wait for other chats, those that are over first."""
        return await self._line.ask(lambda: self._line.database.agent_waits(waits_max))


class ConnectedWorkers:
    """Leases and claims."""

    def __init__(self, line: Line, worker_id: WorkerId) -> None:
        self._line = line
        self._worker_id = worker_id
        self._database = line.database
        self._workers = line.database.workers

    async def register(
        self, worker_id: WorkerId, address: str, lease_s: float, *, is_quarantine: bool = False
    ) -> None:
        """Make the row of a worker."""
        database, workers = self._database, self._workers
        await self._line.ask(
            lambda: database.read(
                workers.register(worker_id, address, lease_s, is_quarantine=is_quarantine)
            )
        )

    async def needs_quarantine(self) -> bool:
        """Return whether a suspect waits for a worker that takes it."""
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.needs_quarantine()))

    async def user_load(self, running_per_user_max: int) -> UserLoad:
        """Return the users who run as many chats as they may."""
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.user_load(running_per_user_max)))

    async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
        """Extend a lease."""
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.renew(worker_id, lease_s)))

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """Let the worker claim nothing any more."""
        database, workers = self._database, self._workers
        await self._line.ask(lambda: database.read(workers.begin_drain(worker_id)))

    async def end(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """End a worker, itself or with a proof of its death."""
        is_own = worker_id == self._worker_id
        end = self._database.end if is_own else self._database.prove_dead
        return await self._line.ask(lambda: end(worker_id))

    async def sweep(self, worker_id: WorkerId, limits: SweepLimits) -> tuple[Claimed, ...]:
        """Claim what has no live owner."""
        return await self._line.ask(lambda: self._database.sweep(worker_id, limits))

    async def park(self, worker_id: WorkerId, chats_max: int) -> tuple[ChatState, ...]:
        """End the turns that kill their owners."""
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.park(worker_id, chats_max)))

    async def reclaim(
        self, worker_id: WorkerId, chat_id: ChatId, owner_epoch: int
    ) -> Claimed | None:
        """Claim anew."""
        database, workers = self._database, self._workers
        return await self._line.ask(
            lambda: database.read(workers.reclaim(worker_id, chat_id, owner_epoch))
        )

    async def due_actions(self, chats_max: int) -> tuple[DueAction, ...]:
        """Return chats whose client is late."""
        return await self._line.ask(lambda: self._database.due_actions(self._worker_id, chats_max))

    async def owned(self, worker_id: WorkerId) -> tuple[ChatState, ...]:
        """Return the chats that name the worker."""
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.owned(worker_id)))

    async def states(self, chat_ids: tuple[ChatId, ...]) -> tuple[ChatState, ...]:
        """Return states, read now."""
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.states(chat_ids)))


class ConnectedPartials:
    """Partial answers."""

    def __init__(self, line: Line) -> None:
        self._line = line

    async def add(self, chunks: tuple[Chunk, ...]) -> None:
        """Keep chunks."""
        await self._line.ask(lambda: self._line.database.keep_partials(chunks))

    async def load(
        self, chat_id: ChatId, history_version: int, generation_attempt: int
    ) -> tuple[Piece, ...]:
        """Return the pieces of one episode."""
        episode = (chat_id, history_version, generation_attempt)
        return await self._line.ask(lambda: self._line.database.load_partials(episode))
