"""Metadata beside the execution: titles, labels, pins, modes, models, and the read mark."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from chatd.chats.store.pins import lock_pins, move_pin
from chatd.chats.store.preconditions import expect
from chatd.chats.store.view_rows import labels_to_json
from chatd.chats.store.workspace_moves import require_rest
from chatd.content.domain.messages import ChatMode
from chatd.models.domain.profile import ReasoningEffort
from chatd.primitives.domain.errors import ChatNotFound, InvalidRequest
from chatd.primitives.domain.ids import ChatId, MessageId, OwnerId
from parley.postgres import Connection, Pool

# Change the given fields of a chat, for its owner. The order of lists depends on none of them.
# May run: owner.
UPDATE_CHAT = """
    UPDATE chat.chats SET
        title = coalesce($3::text, title), has_own_title = has_own_title OR $3::text IS NOT NULL,
        labels = coalesce($4::text::jsonb, labels), mode = coalesce($5::text, mode),
        model_id = coalesce($6::text, model_id),
        reasoning_effort = coalesce($7::text, reasoning_effort),
        workspace_id = CASE WHEN $8::text IS NULL THEN workspace_id
            ELSE nullif($8::text, '')::uuid END,
        mcp_server_ids = coalesce($9::uuid[], mcp_server_ids),
        fallback_model_id = coalesce($10::text, fallback_model_id)
    WHERE id = $1 AND owner_id = $2 RETURNING id
"""

# Whether a chat can be pinned, for its owner.
# May run: owner.
SELECT_PINNABLE = """
    SELECT c.parent_chat_id IS NULL AS is_root, e.archived
    FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
    WHERE c.id = $1 AND c.owner_id = $2
"""

# Move the owner's read mark forward, never back and never beyond the last message.
# May run: owner.
MARK_READ = """
    UPDATE chat.chats c SET last_read_message_id
        = greatest(c.last_read_message_id,
            least(coalesce(nullif($3::bigint, 0), e.next_message_id), e.next_message_id - 1))
    FROM chat.chat_exec e
    WHERE c.id = $1 AND c.owner_id = $2 AND e.chat_id = c.id RETURNING c.last_read_message_id
"""


@dataclass(frozen=True, slots=True)
class ChatChanges:
    """Changes of a chat; None leaves a field unchanged."""

    title: str | None = None
    labels: Mapping[str, str] | None = None
    pin_order: int | None = None
    mode: ChatMode | None = None
    model_id: str | None = None
    reasoning_effort: ReasoningEffort | None = None
    workspace_id: str | None = None  # Empty for none.
    mcp_server_ids: tuple[str, ...] | None = None
    fallback_model_id: str | None = None  # Empty for the installation's.


class Metadata:
    """Changes the metadata of chats.

    `metadata_changed` is called with every changed chat, after the commit.
    """

    def __init__(
        self, pool: Pool, metadata_changed: Callable[[ChatId], None] = lambda _: None
    ) -> None:
        self._pool = pool
        self._metadata_changed = metadata_changed

    async def change(
        self, chat_id: ChatId, *, owner_id: OwnerId, changes: ChatChanges, etag: str = ""
    ) -> None:
        """Change all given fields, or none; with an etag only if the chat still has it.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            InvalidRequest: A chat that is archived or a child cannot be pinned.
            VersionConflict: The chat has another etag.
            TransitionNotAllowed: Its workspace would change during a turn.
            AgentAtWork: The same during a turn of an agent that works there.
        """
        repinned: frozenset[ChatId] = frozenset()
        async with self._pool.acquire() as connection, connection.transaction():
            if changes.pin_order is not None:
                await lock_pins(connection, owner_id)
            if changes.workspace_id is not None:
                await require_rest(connection, chat_id, owner_id, changes.workspace_id)
            await expect(connection, chat_id, owner_id=owner_id, etag=etag)
            if changes.pin_order is not None:
                repinned = await self._pin(connection, chat_id, owner_id, changes.pin_order)
            found = await connection.fetchval(
                UPDATE_CHAT,
                chat_id,
                owner_id,
                changes.title,
                None if changes.labels is None else labels_to_json(dict(changes.labels)),
                changes.mode,
                changes.model_id,
                changes.reasoning_effort,
                changes.workspace_id,
                changes.mcp_server_ids,
                changes.fallback_model_id,
            )
        if found is None:
            raise ChatNotFound(chat_id)
        for changed_id in {chat_id, *repinned}:
            self._metadata_changed(changed_id)

    async def mark_read(self, chat_id: ChatId, *, owner_id: OwnerId, message_id: int) -> MessageId:
        """Move the read mark forward, to the newest message if 0 is given; return its position.

        Raises:
            ChatNotFound: There is no such chat of this owner.
        """
        mark = await self._pool.fetchval(MARK_READ, chat_id, owner_id, message_id)
        if mark is None:
            raise ChatNotFound(chat_id)
        self._metadata_changed(chat_id)
        return MessageId(mark)

    async def _pin(
        self,
        connection: Connection,
        chat_id: ChatId,
        owner_id: OwnerId,
        place: int,
    ) -> frozenset[ChatId]:
        row = await connection.fetchrow(SELECT_PINNABLE, chat_id, owner_id)
        if row is None:
            raise ChatNotFound(chat_id)
        if place and not row["is_root"]:
            raise InvalidRequest("chat.pin_order", "only root chats can be pinned")
        if place and row["archived"]:
            raise InvalidRequest("chat.pin_order", "unarchive the chat before pinning it")
        return await move_pin(connection, owner_id=owner_id, chat_id=chat_id, place=place)
