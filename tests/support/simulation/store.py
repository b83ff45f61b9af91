"""The database as one process reaches it: the real rules of writing, over lines that break."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from chatd.domain.chat import ChatId, ChatState, Message, MessageId, WorkerId
from chatd.domain.commands import (
    Command,
    DeleteQueuedMessage,
    EditMessage,
    PromoteQueuedMessage,
    RequestCompaction,
)
from chatd.domain.errors import ChatError
from chatd.domain.facts import NO_FACTS, Facts
from chatd.domain.partials import Chunk
from chatd.domain.pieces import Piece
from chatd.domain.tools import StoredExecution
from chatd.domain.transitions import Decision
from chatd.domain.workers import Claimed, DueAction, NamedChat, SweepLimits
from chatd.store.applying import Appended, Applier, Unwritten, Wrote
from chatd.store.statements import ClientKey
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from support.simulation.database import KeyUsed, SimulatedDatabase, Written
from support.simulation.loop import Host
from support.simulation.network import Network

T = TypeVar("T")

NEEDS_FACTS = (DeleteQueuedMessage, PromoteQueuedMessage, EditMessage, RequestCompaction)


class Line:
    """A process's connections to the database."""

    def __init__(self, database: SimulatedDatabase, network: Network, host: Host) -> None:
        self.database = database
        self._network = network
        self.host = host

    async def ask(self, statement: Callable[[], T]) -> T:
        """Have a statement executed.

        Raises:
            DatabaseUnavailable: nobody answered; it may have been executed.
        """
        return await self._network.ask(self.host, statement, _cut)


def _cut() -> Exception:
    return DatabaseUnavailable("the line was cut")


class ConnectedApplier(Applier):
    """The real one, with statements of the simulated database."""

    def __init__(
        self,
        line: Line,
        *,
        moved: Callable[[ChatState], None],
        appended: Appended,
        clock: Clock,
    ) -> None:
        super().__init__(
            cast(Any, None), facts_of=self._facts, moved=moved, appended=appended, clock=clock
        )
        self._line = line

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
        try:
            state = await self._line.ask(lambda: self._line.database.write(seen, decision, key))
        except DatabaseUnavailable:
            return await self._after_outage(seen, decision, client_key)
        return Unwritten.REFUSED if state is None else Wrote(state)

    async def _is_used(self, chat_id: ChatId, client_key: ClientKey) -> bool:
        return await self._line.ask(lambda: self._line.database.is_used(chat_id, client_key.key))

    async def _under_lock(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None
    ) -> ChatState:
        key = None if client_key is None else client_key.key
        done: Written = await self._line.ask(
            lambda: self._line.database.write_locked(chat_id, command, key)
        )
        if done.state is None:
            return done.seen
        return self._learned(done.seen, done.decision, Wrote(done.state))


class ConnectedChats:
    """Chats, as the engine of one process knows them."""

    def __init__(
        self, line: Line, applier: ConnectedApplier, moved: Callable[[ChatState], None]
    ) -> None:
        self._line = line
        self._applier = applier
        self._moved = moved

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

    def noticed(self, state: ChatState) -> None:
        """Take a state that was written by another way."""
        self._applier.known.learn(state)
        self._moved(state)

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


class ConnectedWorkers:
    """Leases and claims."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._database = line.database
        self._workers = line.database.workers

    async def register(self, worker_id: WorkerId, address: str, lease_s: float) -> None:
        """Make the row of a worker."""
        database, workers = self._database, self._workers
        await self._line.ask(lambda: database.read(workers.register(worker_id, address, lease_s)))

    async def renew(self, worker_id: WorkerId, lease_s: float) -> tuple[NamedChat, ...] | None:
        """Extend a lease."""
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.renew(worker_id, lease_s)))

    async def begin_drain(self, worker_id: WorkerId) -> None:
        """Let the worker claim nothing any more."""
        database, workers = self._database, self._workers
        await self._line.ask(lambda: database.read(workers.begin_drain(worker_id)))

    async def expire(self, worker_id: WorkerId) -> None:
        """End the lease."""
        database, workers = self._database, self._workers
        await self._line.ask(lambda: database.read(workers.expire(worker_id)))

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
        database, workers = self._database, self._workers
        return await self._line.ask(lambda: database.read(workers.due_actions(chats_max)))

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
