"""Idempotency keys of requests: a key is stored by the statement that executes the request.

A first use needs no lookup. A repeated request is detected by the key's unique constraint, or by a
refusal of the command that was executed already; in both cases the key is looked up and the
response is the first one's.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import asyncpg
import msgspec

from chatd.chats.domain.agents import AgentsRefused
from chatd.chats.domain.chat import Message, QueuedMessage
from chatd.chats.domain.commands import Command
from chatd.chats.domain.views import ChatView
from chatd.chats.store.applying import Applied
from chatd.chats.store.rows import message_of, queue_of
from chatd.chats.store.view_rows import CHATS, VIEW_COLUMNS, view_of
from chatd.primitives.domain.errors import ChatError, ChatNotFound, RequestIdReused
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.domain.requests import ClientKey
from chatd.primitives.store.constraints import Constraint
from parley.postgres import Pool

# The body hash of a key; used only for a chat whose owner was checked.
# May run: user.
SELECT_BODY_HASH = "SELECT body_hash FROM chat.client_keys WHERE chat_id = $1 AND key = $2"

# The outcome of a key and the current chat, for the owner. The message of the turn is found also
# after it was deleted by an edit.
# May run: owner.
SELECT_OUTCOME = f"""
    SELECT {VIEW_COLUMNS}, used.snapshot_version AS used_version, used.outcome::text AS outcome,
        used.created_at AS used_at, message.id AS message_id, message.revision AS message_revision,
        message.role AS message_role, message.visibility AS message_visibility,
        message.content::text AS message_content,
        message.content_version AS message_content_version,
        message.is_compressed AS message_is_compressed, message.is_deleted AS message_is_deleted,
        message.created_by AS message_created_by, message.created_at AS message_created_at,
        message.use::text AS message_use, message.choice::text AS message_choice,
        message.finish_reason AS message_finish_reason, message.origin AS message_origin
    FROM {CHATS} JOIN chat.client_keys used ON used.chat_id = c.id AND used.key = $3
    LEFT JOIN chat.chat_messages message
        ON message.chat_id = c.id AND message.id = (used.outcome ->> 'turn_id')::bigint
    WHERE c.id = $1 AND c.owner_id = $2
"""

# The queue that a request dropped.
# May run: owner.
SELECT_DROPPED = """
    SELECT used.outcome ->> 'dropped' FROM chat.client_keys used
    JOIN chat.chats c ON c.id = used.chat_id
    WHERE c.id = $1 AND c.owner_id = $2 AND used.key = $3
"""


class Applying(Protocol):
    """Executes commands."""

    async def applied(
        self, chat_id: ChatId, command: Command, client_key: ClientKey | None = None
    ) -> Applied:
        """Execute a command and store its key with it."""
        ...


class Recorded(msgspec.Struct, frozen=True):
    """The outcome that a statement stores with a key.

    Attributes:
        turn_id: The message whose turn it started or left running.
        is_queued: Whether the queue changed, so that a message is queued.
        dropped: The queue that it dropped; None for none.
        answered: The action that it answered; None for none.
    """

    turn_id: int
    is_queued: bool
    dropped: str | None = None
    answered: str | None = None


class _OfMessage:
    """The columns of the message in a wider row."""

    def __init__(self, row: asyncpg.Record) -> None:
        self._row = row

    def __getitem__(self, column: str) -> Any:
        return self._row[f"message_{column}"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a request, its time, and the current chat.

    Attributes:
        chat: The chat.
        turn_message: The message whose turn the request started or found running.
        is_queued: Whether the request changed the queue.
        snapshot_version: The chat's version that the request made.
        happened_at: When.
        dropped: The queued messages that the request dropped.
        answered_action_id: The action that the request answered; empty for none.
    """

    chat: ChatView
    turn_message: Message
    is_queued: bool
    snapshot_version: int
    happened_at: datetime
    dropped: tuple[QueuedMessage, ...] = ()
    answered_action_id: str = ""


class Keys:
    """Executes commands at most once per key."""

    def __init__(self, pool: Pool, chats: Applying) -> None:
        self._pool = pool
        self._chats = chats

    async def once(self, chat_id: ChatId, command: Command, key: ClientKey) -> Applied | None:
        """Execute a command unless its key was used before; return None then.

        Raises:
            RequestIdReused: The key was used for another body.
            ChatError: The command is refused, and was not executed before.
            AgentsRefused: The same, because the chat of its claim was interrupted.
        """
        try:
            return await self._chats.applied(chat_id, command, key)
        except (ChatError, AgentsRefused) as refusal:
            await self.require_used(chat_id, key, refusal)
            return None
        except asyncpg.UniqueViolationError as violation:
            if violation.constraint_name != Constraint.CLIENT_KEYS_PKEY:
                raise
            await self.require_used(chat_id, key, violation)
            return None

    async def is_used(self, chat_id: ChatId, key: ClientKey) -> bool:
        """Return whether the key was used for the same body.

        Raises:
            RequestIdReused: It was used for another body.
        """
        body_hash = await self._pool.fetchval(SELECT_BODY_HASH, chat_id, key.key)
        if body_hash not in (None, key.body_hash):
            raise RequestIdReused(key.key)
        return body_hash is not None

    async def require_used(self, chat_id: ChatId, key: ClientKey, otherwise: Exception) -> None:
        """Require that the key was used for the same body.

        Raises:
            RequestIdReused: It was used for another body.
            Exception: `otherwise`, if it was never used.
        """
        body_hash = await self._pool.fetchval(SELECT_BODY_HASH, chat_id, key.key)
        if body_hash is None:
            raise otherwise
        if body_hash != key.body_hash:
            raise RequestIdReused(key.key) from None

    async def outcome(self, chat_id: ChatId, *, owner_id: OwnerId, key: str) -> Outcome:
        """Return the outcome of the request with that key, also for repeated requests.

        Raises:
            ChatNotFound: The chat is gone.
        """
        row = await self._pool.fetchrow(SELECT_OUTCOME, chat_id, owner_id, key)
        if row is None:
            raise ChatNotFound(chat_id)
        recorded = msgspec.json.decode(row["outcome"], type=Recorded)
        return Outcome(
            chat=view_of(row),
            turn_message=message_of(_OfMessage(row)),
            is_queued=recorded.is_queued,
            snapshot_version=row["used_version"],
            happened_at=row["used_at"],
            dropped=queue_of(recorded.dropped),
            answered_action_id=recorded.answered or "",
        )

    async def dropped(
        self, chat_id: ChatId, *, owner_id: OwnerId, key: str
    ) -> tuple[QueuedMessage, ...]:
        """Return the queued messages that the request with that key dropped."""
        return queue_of(await self._pool.fetchval(SELECT_DROPPED, chat_id, owner_id, key))
