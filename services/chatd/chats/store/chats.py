"""The store of chats: creates them, executes decisions, and serves the reads of the engine."""

from collections.abc import Callable
from datetime import datetime

from chatd.chats.domain.chat import (
    NO_FACTS,
    ChatState,
    DoneRevert,
    Facts,
    Message,
    NewMessage,
    QueuedMessage,
)
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
from chatd.chats.store import queries
from chatd.chats.store.applying import Appended, Applier
from chatd.chats.store.creation import NewChat, insert_chat
from chatd.chats.store.rows import (
    done_revert_of,
    message_of,
    queued_message_of,
    state_of,
    stored_execution_of,
)
from chatd.chats.store.statements import SELECT_STATE
from chatd.content.domain.tools import StoredExecution
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, MessageId, RevertId, WorkerId
from chatd.primitives.domain.requests import ClientKey
from parley.clock import Clock
from parley.postgres import Pool


def ignore_event(
    before: ChatState, after: ChatState, messages: tuple[NewMessage, ...], at: datetime | None
) -> None:
    """Ignore a write."""


class PostgresChats(Applier):
    """Chats in PostgreSQL.

    `state_changed` is called with every state that was written, after its commit. `appended` is
    called before that with messages that a command added to the end of a history, if it changed
    nothing else in it.
    """

    def __init__(
        self,
        pool: Pool,
        state_changed: Callable[[ChatState], None],
        clock: Clock,
        *,
        appended: Appended = ignore_event,
        jitter: Callable[[], float] = lambda: 0.0,
    ) -> None:
        super().__init__(
            pool,
            facts_of=self._facts,
            state_changed=state_changed,
            appended=appended,
            clock=clock,
            jitter=jitter,
        )

    async def add(
        self,
        new: NewChat,
        *,
        claimed_by: WorkerId | None,
        client_key: ClientKey | None = None,
    ) -> ChatState | None:
        """Create a running chat and store its key; return None if its id exists already."""
        state = await insert_chat(self._pool, new, claimed_by=claimed_by, client_key=client_key)
        if state is not None:
            self.publish_state(state)
        return state

    def publish_state(self, state: ChatState) -> None:
        """Publish a state that was written by other means than `apply`."""
        self.known.learn(state)
        self._state_changed(state)

    async def state(self, chat_id: ChatId) -> ChatState:
        """Return the current state of a chat's execution.

        Raises:
            ChatNotFound: The chat does not exist.
        """
        row = await self._pool.fetchrow(SELECT_STATE, chat_id)
        if row is None:
            raise ChatNotFound(chat_id)
        return state_of(row)

    async def history(self, chat_id: ChatId, after_revision: int = 0) -> tuple[Message, ...]:
        """Return the live messages in order, or all that changed after a revision.

        Changed messages include deleted ones, marked as such.
        """
        rows = await self._pool.fetch(queries.SELECT_HISTORY, chat_id, after_revision)
        return tuple(map(message_of, rows))

    async def executions(
        self, chat_id: ChatId, message_id: MessageId
    ) -> tuple[StoredExecution, ...]:
        """Return the dispatched calls of an assistant message."""
        rows = await self._pool.fetch(queries.SELECT_EXECUTIONS, chat_id, message_id)
        return tuple(map(stored_execution_of, rows))

    async def queue(self, chat_id: ChatId) -> tuple[QueuedMessage, ...]:
        """Return the queued messages, in order."""
        rows = await self._pool.fetch(queries.SELECT_QUEUE, chat_id)
        return tuple(map(queued_message_of, rows))

    async def done_revert(self, chat_id: ChatId, revert_id: RevertId) -> DoneRevert | None:
        """Return a completed revert of a chat."""
        row = await self._pool.fetchrow(queries.SELECT_REVERT, chat_id, revert_id)
        return None if row is None else done_revert_of(row)

    async def done_reverts(self, chat_id: ChatId, reverts_max: int) -> tuple[DoneRevert, ...]:
        """Return the completed reverts of a chat, the newest first."""
        rows = await self._pool.fetch(queries.SELECT_REVERTS, chat_id, reverts_max)
        return tuple(map(done_revert_of, rows))

    async def _facts(self, chat_id: ChatId, command: Command) -> Facts:
        """Read the inputs of `command` beside the state; the guard ensures that they still hold."""
        match command:
            case (
                DeleteQueuedMessage(wanted)
                | ChangeQueuedMessage(wanted)
                | PromoteQueuedMessage(wanted, _)
            ):
                row = await self._pool.fetchrow(queries.SELECT_QUEUED_FACTS, chat_id, wanted)
                assert row is not None  # An aggregate always returns a row.
                return Facts(is_queued=row["is_queued"], is_queue_head=bool(row["is_head"]))
            case EditMessage(message_id) | RevertChat(_, message_id):
                row = await self._pool.fetchrow(queries.SELECT_MESSAGE, chat_id, message_id)
                return Facts(target=None if row is None else message_of(row))
            case UndoRevert(_, undone_id):
                return Facts(undone=await self.done_revert(chat_id, undone_id))
            case RequestCompaction():
                found = await self._pool.fetchval(queries.SELECT_HAS_MATERIAL, chat_id)
                return Facts(has_material=bool(found))
            case _:
                return NO_FACTS
