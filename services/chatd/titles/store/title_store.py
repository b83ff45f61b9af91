"""What models write about chats: titles, turn labels and summaries.

Each write carries the bill of the call behind it, and takes effect only while what it was made from
is still true: a title while nobody chose one, the others while the history is the same.
"""

from dataclasses import dataclass

from chatd.chats.domain.chat import Message
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.spend.domain.ledger import LedgerEntry
from chatd.spend.store.ledger import ENTER, entry_arguments
from parley.postgres import Pool, typed_outages

# The engine's, for a chat whose turn just ended here.
SELECT_FACTS = """
    SELECT c.parent_chat_id IS NULL AS is_root, c.summary <> '' AS has_summary, e.history_version,
        (SELECT count(*) FROM chat.chat_messages asked
            WHERE asked.chat_id = c.id AND asked.id > c.summarised_until AND asked.role = 'user'
                AND NOT asked.is_deleted AND asked.visibility <> 'model') AS new_turns
    FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id WHERE c.id = $1
"""

# The newest of what people see, for the same engine.
SELECT_NEWEST = f"""
    SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = $1 AND NOT is_deleted AND visibility <> 'model'
        AND role IN ('user', 'assistant')
    ORDER BY id DESC LIMIT $2
"""

# The bill takes $1 to $21, the chat among them as $20; it is entered whatever becomes of the rest.
BILLED = f"WITH billed AS ({ENTER})"

SET_TITLE = f"""
    {BILLED} UPDATE chat.chats c SET title = $22 FROM chat.chat_exec e
    WHERE c.id = $20 AND e.chat_id = c.id AND NOT c.has_own_title AND c.title = $23
    RETURNING e.snapshot_version
"""

SET_GENERATED_LABEL = f"""
    {BILLED} UPDATE chat.chats c SET last_turn_summary = $22 FROM chat.chat_exec e
    WHERE c.id = $20 AND c.parent_chat_id IS NULL AND e.chat_id = c.id AND e.history_version = $23
    RETURNING e.snapshot_version
"""

SET_GENERATED_SUMMARY = f"""
    {BILLED} UPDATE chat.chats c SET summary = $22, summarised_until = e.next_message_id - 1
    FROM chat.chat_exec e
    WHERE c.id = $20 AND c.parent_chat_id IS NULL AND e.chat_id = c.id AND e.history_version = $23
    RETURNING e.snapshot_version
"""

# Without a call.
SET_LABEL = """
    UPDATE chat.chats c SET last_turn_summary = $2 FROM chat.chat_exec e
    WHERE c.id = $1 AND c.parent_chat_id IS NULL AND c.last_turn_summary <> $2
        AND e.chat_id = c.id AND e.history_version = $3
    RETURNING e.snapshot_version
"""

SET_REPORT = """
    UPDATE chat.chats c SET summary = $2 FROM chat.chat_exec e
    WHERE c.id = $1 AND c.parent_chat_id IS NOT NULL AND e.chat_id = c.id AND e.history_version = $3
    RETURNING e.snapshot_version
"""


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """What decides which notes a chat needs.

    Attributes:
        new_turns: Messages of the user since the last summary.
    """

    is_root: bool
    has_summary: bool
    history_version: int
    new_turns: int


class PostgresTitles:
    """Notes in PostgreSQL; each write returns the chat's version, None if it took no effect."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        """Return what decides which notes a chat needs; None if it is gone."""
        with typed_outages():
            row = await self._pool.fetchrow(SELECT_FACTS, chat_id)
        return None if row is None else ChatFacts(**dict(row))

    async def newest(self, chat_id: ChatId, messages_max: int) -> tuple[Message, ...]:
        """Return the newest messages that people see, in order."""
        with typed_outages():
            rows = await self._pool.fetch(SELECT_NEWEST, chat_id, messages_max)
        return tuple(message_of(row) for row in reversed(rows))

    async def set_title(
        self, entry: LedgerEntry, owner: Owner, *, title: str, fallback: str
    ) -> int | None:
        """Give a chat a title in place of the fallback, unless it has another one by now."""
        return await self._billed(SET_TITLE, entry, owner, title, fallback)

    async def set_generated_label(self, entry: LedgerEntry, owner: Owner, label: str) -> int | None:
        """Label the last turn of a root chat, unless its history moved on."""
        version = entry.history_version
        return await self._billed(SET_GENERATED_LABEL, entry, owner, label, version)

    async def set_generated_summary(
        self, entry: LedgerEntry, owner: Owner, summary: str
    ) -> int | None:
        """Summarise a root chat, unless its history moved on."""
        version = entry.history_version
        return await self._billed(SET_GENERATED_SUMMARY, entry, owner, summary, version)

    async def set_label(self, chat_id: ChatId, label: str, history_version: int) -> int | None:
        """Label the last turn of a root chat without a call, unless its history moved on."""
        with typed_outages():
            version: int | None = await self._pool.fetchval(
                SET_LABEL, chat_id, label, history_version
            )
        return version

    async def set_report(self, chat_id: ChatId, summary: str, history_version: int) -> int | None:
        """Summarise a child by its report, unless its history moved on."""
        with typed_outages():
            version: int | None = await self._pool.fetchval(
                SET_REPORT, chat_id, summary, history_version
            )
        return version

    async def _billed(
        self, statement: str, entry: LedgerEntry, owner: Owner, *rest: object
    ) -> int | None:
        arguments = (*entry_arguments(entry), entry.chat_id, owner.id, *rest)
        with typed_outages():
            version: int | None = await self._pool.fetchval(statement, *arguments)
        return version
