"""Stores generated titles, turn labels and summaries.

Each write enters the bill of its call, and takes effect only while its input is unchanged: a title
while no user has chosen one, the others while the history version is the same.
"""

from dataclasses import dataclass

from chatd.chats.domain.chat import Message
from chatd.chats.store.queries import MESSAGE_COLUMNS
from chatd.chats.store.rows import message_of
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.spend.domain.ledger import LedgerEntry
from chatd.spend.store.ledger import ENTER, entry_arguments
from parley.postgres import Pool

# Without authorisation, for the engine: a chat whose turn just ended in this process.
# May run: process.
SELECT_FACTS = """
    SELECT c.parent_chat_id IS NULL AS is_root, c.summary <> '' AS has_summary, e.history_version,
        (SELECT count(*) FROM chat.chat_messages asked
            WHERE asked.chat_id = c.id AND asked.id > c.summarised_until AND asked.role = 'user'
                AND NOT asked.is_deleted AND asked.visibility <> 'model') AS new_turns
    FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id WHERE c.id = $1
"""

# The newest messages that users see, also for the engine.
# May run: process.
SELECT_NEWEST = f"""
    SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages
    WHERE chat_id = $1 AND NOT is_deleted AND visibility <> 'model'
        AND role IN ('user', 'assistant')
    ORDER BY id DESC LIMIT $2
"""

# The bill uses $1 to $22, the chat is $21; it is entered even if the update has no effect.
BILLED = f"WITH billed AS ({ENTER})"

# May run: process.
SET_TITLE = f"""
    {BILLED} UPDATE chat.chats c SET title = $23 FROM chat.chat_exec e
    WHERE c.id = $21 AND e.chat_id = c.id AND NOT c.has_own_title AND c.title = $24
    RETURNING e.snapshot_version
"""

# May run: process.
SET_GENERATED_LABEL = f"""
    {BILLED} UPDATE chat.chats c SET last_turn_summary = $23 FROM chat.chat_exec e
    WHERE c.id = $21 AND c.parent_chat_id IS NULL AND e.chat_id = c.id AND e.history_version = $24
    RETURNING e.snapshot_version
"""

# May run: process.
SET_GENERATED_SUMMARY = f"""
    {BILLED} UPDATE chat.chats c SET summary = $23, summarised_until = e.next_message_id - 1
    FROM chat.chat_exec e
    WHERE c.id = $21 AND c.parent_chat_id IS NULL AND e.chat_id = c.id AND e.history_version = $24
    RETURNING e.snapshot_version
"""

# Without a model call.
# May run: process.
SET_LABEL = """
    UPDATE chat.chats c SET last_turn_summary = $2 FROM chat.chat_exec e
    WHERE c.id = $1 AND c.parent_chat_id IS NULL AND c.last_turn_summary <> $2
        AND e.chat_id = c.id AND e.history_version = $3
    RETURNING e.snapshot_version
"""

# May run: process.
SET_REPORT = """
    UPDATE chat.chats c SET summary = $2 FROM chat.chat_exec e
    WHERE c.id = $1 AND c.parent_chat_id IS NOT NULL AND e.chat_id = c.id AND e.history_version = $3
    RETURNING e.snapshot_version
"""


@dataclass(frozen=True, slots=True)
class ChatFacts:
    """The facts that decide what to generate for a chat.

    Attributes:
        new_turns: Messages of the user since the last summary.
    """

    is_root: bool
    has_summary: bool
    history_version: int
    new_turns: int


class PostgresTitles:
    """Titles in PostgreSQL; each write returns the chat's version, None if it had no effect."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def facts(self, chat_id: ChatId) -> ChatFacts | None:
        """Return the facts that decide what to generate for a chat; None if it is deleted."""
        row = await self._pool.fetchrow(SELECT_FACTS, chat_id)
        return None if row is None else ChatFacts(**dict(row))

    async def newest(self, chat_id: ChatId, messages_max: int) -> tuple[Message, ...]:
        """Return the newest messages that users see, in order."""
        rows = await self._pool.fetch(SELECT_NEWEST, chat_id, messages_max)
        return tuple(message_of(row) for row in reversed(rows))

    async def set_title(
        self, entry: LedgerEntry, owner: Owner, *, title: str, fallback: str
    ) -> int | None:
        """Set a title in place of the fallback, unless the chat has another title by now."""
        return await self._billed(SET_TITLE, entry, owner, title, fallback)

    async def set_generated_label(self, entry: LedgerEntry, owner: Owner, label: str) -> int | None:
        """Store a generated label of a root chat's last turn, unless its history changed."""
        version = entry.history_version
        return await self._billed(SET_GENERATED_LABEL, entry, owner, label, version)

    async def set_generated_summary(
        self, entry: LedgerEntry, owner: Owner, summary: str
    ) -> int | None:
        """Store a generated summary of a root chat, unless its history changed."""
        version = entry.history_version
        return await self._billed(SET_GENERATED_SUMMARY, entry, owner, summary, version)

    async def set_label(self, chat_id: ChatId, label: str, history_version: int) -> int | None:
        """Store a label of a root chat's last turn without a bill, unless its history changed."""
        version: int | None = await self._pool.fetchval(SET_LABEL, chat_id, label, history_version)
        return version

    async def set_report(self, chat_id: ChatId, summary: str, history_version: int) -> int | None:
        """Store a child's report as its summary, unless its history changed."""
        version: int | None = await self._pool.fetchval(
            SET_REPORT, chat_id, summary, history_version
        )
        return version

    # May run: process.
    async def _billed(
        self, statement: str, entry: LedgerEntry, owner: Owner, *rest: object
    ) -> int | None:
        arguments = (*entry_arguments(entry), entry.chat_id, owner.id, *rest)
        version: int | None = await self._pool.fetchval(statement, *arguments)
        return version
