"""A root chat and its children as one: archived, unarchived and deleted together."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.commands import SetArchived
from chatd.chats.domain.state_changes import calls_at_executors
from chatd.chats.domain.transitions import decide
from chatd.chats.store.cleanup.expiry import take_notice
from chatd.chats.store.pins import leave_pins, lock_pins, move_pin, return_pin
from chatd.chats.store.preconditions import expect
from chatd.chats.store.rows import state_of
from chatd.chats.store.statements import LOCK_ORDER, STATE_COLUMNS, decision_statement
from chatd.primitives.domain.errors import ChatNotFound, InvalidRequest
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.postgres import ConflictRetries, Connection, Pool

# Whether a chat is a root, for its owner.
# May run: owner.
SELECT_IS_ROOT = """
    SELECT parent_chat_id IS NULL FROM chat.chats WHERE id = $1 AND owner_id = $2
"""

# The executions of a chat tree whose owner was checked, in the order in which all lock them.
# A command locks its execution before other rows of a chat, as this does.
# May run: checked by SELECT_IS_ROOT.
LOCK_TREE = f"""
    SELECT {STATE_COLUMNS} FROM chat.chat_exec e
    WHERE e.chat_id IN (SELECT id FROM chat.chats WHERE root_chat_id = $1)
    {LOCK_ORDER} FOR UPDATE
"""

# Calls of a chat tree that run, or ask, at their executors, to be cancelled there: the rows outlive
# the chats. Those of this service end with the task that runs them.
# May run: checked by SELECT_IS_ROOT.
CANCEL_CALLS = """
    INSERT INTO chat.cancelled_calls (execution_id, chat_id, owner_id, owner_role,
        tool_call_id, tool_name, executor, journal_generation, owner_epoch, created_at, try_at)
    SELECT t.execution_id, t.chat_id, c.owner_id, c.owner_role, t.tool_call_id, t.tool_name,
        t.executor, t.journal_generation, e.owner_epoch, clock_timestamp(), clock_timestamp()
    FROM chat.tool_calls t JOIN chat.chats c ON c.id = t.chat_id
    JOIN chat.chat_exec e ON e.chat_id = t.chat_id
    WHERE c.root_chat_id = $1 AND t.execution_id = ANY ($2::uuid[]) AND t.executor <> 'chatd'
    ON CONFLICT (execution_id) DO NOTHING
"""

# Delete a chat tree, for its owner; its cost stays in the ledger. Feeds read the deletions.
# May run: owner.
DELETE_TREE = """
    WITH gone AS (
        DELETE FROM chat.chats WHERE root_chat_id = $1 AND owner_id = $2 RETURNING id, owner_id),
    revoked AS (
        INSERT INTO chat.revoked_shares (chat_id, grantee_id, changed_xid, revoked_at)
        SELECT gone.id, share.grantee_id, pg_current_xact_id(), clock_timestamp()
        FROM gone JOIN chat.chat_shares share ON share.chat_id = gone.id
        ON CONFLICT (chat_id, grantee_id) DO UPDATE SET changed_xid = excluded.changed_xid,
            revoked_at = excluded.revoked_at)
    INSERT INTO chat.deleted_chats (chat_id, owner_id, changed_xid, deleted_at)
    SELECT id, owner_id, pg_current_xact_id(), clock_timestamp() FROM gone
    ON CONFLICT (chat_id) DO UPDATE SET changed_xid = excluded.changed_xid,
        deleted_at = excluded.deleted_at
"""


@dataclass(frozen=True, slots=True)
class _Changed:
    """What a transaction changed: states, and other chats whose metadata changed."""

    states: Sequence[ChatState]
    repinned: frozenset[ChatId] = frozenset()


class ChatTrees:
    """Changes whole chat trees or nothing.

    `state_changed` is called with every state that was written, after the commit. It is called once
    more for a chat that was removed, so that its followers read it and find it gone.
    `metadata_changed` is called for every other chat whose metadata changed with it, such as
    another position among the pinned ones. `retries` repeats what met a deadlock.
    """

    def __init__(
        self,
        pool: Pool,
        state_changed: Callable[[ChatState], None],
        retries: ConflictRetries,
        metadata_changed: Callable[[ChatId], None] = lambda _: None,
    ) -> None:
        self._metadata_changed = metadata_changed
        self._pool = pool
        self._state_changed = state_changed
        self._retries = retries

    async def set_archived(
        self, chat_id: ChatId, *, owner_id: OwnerId, archived: bool, etag: str = ""
    ) -> None:
        """Archive or unarchive a root chat and its children.

        With an etag only if the root still has it.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            InvalidRequest: It is a child.
            TransitionNotAllowed: One of them runs; none was changed.
            VersionConflict: The root has another etag.
        """

        async def transaction() -> _Changed:
            async with self._pool.acquire() as connection, connection.transaction():
                await lock_pins(connection, owner_id)
                tree = await self._lock(connection, chat_id, owner_id)
                await expect(connection, chat_id, owner_id=owner_id, etag=etag)
                written = await _set_archived(connection, tree, archived=archived)
                repinned = (
                    await leave_pins(connection, owner_id=owner_id)
                    if archived
                    else await return_pin(connection, owner_id=owner_id, chat_id=chat_id)
                )
                return _Changed(written, repinned)

        self._tell(await self._retries.run(transaction))

    async def archive_expired(self, chat_id: ChatId, *, owner_id: OwnerId) -> None:
        """Archive a tree that nobody used since its owner was told.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            VersionConflict: It was used since, or is pinned.
        """

        async def transaction() -> _Changed:
            async with self._pool.acquire() as connection, connection.transaction():
                tree = await self._lock(connection, chat_id, owner_id)
                await take_notice(connection, chat_id, owner_id=owner_id, is_purge=False)
                return _Changed(await _set_archived(connection, tree, archived=True))

        self._tell(await self._retries.run(transaction))

    async def delete_expired(self, chat_id: ChatId, *, owner_id: OwnerId) -> None:
        """Delete an archived tree that nobody used since its owner was told.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            VersionConflict: It was used since, or is pinned.
        """

        async def transaction() -> _Changed:
            async with self._pool.acquire() as connection, connection.transaction():
                tree = await self._lock(connection, chat_id, owner_id)
                await take_notice(connection, chat_id, owner_id=owner_id, is_purge=True)
                await _cancel_calls(connection, chat_id, tree)
                await connection.execute(DELETE_TREE, chat_id, owner_id)
                return _Changed([_gone(state) for state in tree])

        self._tell(await self._retries.run(transaction))

    async def delete(self, chat_id: ChatId, *, owner_id: OwnerId, etag: str = "") -> None:
        """Delete a root chat and its children permanently, whatever their status.

        With an etag only if the root still has it.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            InvalidRequest: It is a child.
            VersionConflict: The root has another etag.
        """

        async def transaction() -> _Changed:
            async with self._pool.acquire() as connection, connection.transaction():
                await lock_pins(connection, owner_id)
                tree = await self._lock(connection, chat_id, owner_id)
                await expect(connection, chat_id, owner_id=owner_id, etag=etag)
                repinned = await move_pin(connection, owner_id=owner_id, chat_id=chat_id, place=0)
                await _cancel_calls(connection, chat_id, tree)
                await connection.execute(DELETE_TREE, chat_id, owner_id)
                return _Changed([_gone(state) for state in tree], repinned - {chat_id})

        self._tell(await self._retries.run(transaction))

    def _tell(self, changed: _Changed) -> None:
        for state in changed.states:
            self._state_changed(state)
        for chat_id in changed.repinned:
            self._metadata_changed(chat_id)

    async def _lock(
        self,
        connection: Connection,
        chat_id: ChatId,
        owner_id: OwnerId,
    ) -> tuple[ChatState, ...]:
        is_root = await connection.fetchval(SELECT_IS_ROOT, chat_id, owner_id)
        if is_root is None:
            raise ChatNotFound(chat_id)
        if not is_root:
            raise InvalidRequest("chat_id", "is a child; name the root of its family")
        return tuple(map(state_of, await connection.fetch(LOCK_TREE, chat_id)))


# May run: checked by SELECT_IS_ROOT.
async def _set_archived(
    connection: Connection, tree: Iterable[ChatState], *, archived: bool
) -> list[ChatState]:
    """Archive or unarchive the chats of a locked tree; return the states that were written."""
    written: list[ChatState] = []
    for seen in tree:
        decision = decide(seen, SetArchived(archived))
        if decision.state is seen:
            continue
        statement = decision_statement(seen, decision)
        await connection.execute(statement.text, *statement.arguments)
        written.append(decision.state)
    return written


# May run: checked by SELECT_IS_ROOT.
async def _cancel_calls(
    connection: Connection, root_chat_id: ChatId, tree: Iterable[ChatState]
) -> None:
    """Have the calls of a tree cancelled that executors may have."""
    calls = [execution_id for state in tree for execution_id in calls_at_executors(state)]
    if calls:
        await connection.execute(CANCEL_CALLS, root_chat_id, calls)


def _gone(state: ChatState) -> ChatState:
    """Return a state without an owner, newer than any other."""
    return replace(
        state,
        status=Status.WAITING,
        snapshot_version=state.snapshot_version + 1,
        owner_epoch=state.owner_epoch + 1,
        generation_attempt=0,
        worker_id=None,
        queue_length=0,
        pending=(),
        deadline_at=None,
        last_error=None,
        retry=None,
    )
