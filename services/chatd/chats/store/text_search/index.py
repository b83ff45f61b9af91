"""The index of what users and models wrote: which chats changed, and the words of their messages.

Chats are taken in the order of the transactions that changed them, from a horizon on that no later
commit can precede. The row of the horizon is locked meanwhile, so that one process indexes at a
time. Nothing that a turn writes waits for it.
"""

from parley.postgres import Pool

CHATS_MAX = 100
# PostgreSQL refuses vectors of 1 MiB; of a longer message the beginning is indexed.
CHARACTERS_MAX = 100_000

# What users and models wrote in a message.
WRITTEN = f"""
    SELECT left(string_agg(part ->> 'text', E'\\n'), {CHARACTERS_MAX})
    FROM json_array_elements(said.content) part WHERE part ->> 'type' = 'text'
"""
# The messages that are searched.
IS_SEARCHED = """
    NOT said.is_deleted AND said.visibility <> 'model' AND said.role IN ('user', 'assistant')
    AND said.content_version = 1
"""

# No row if another process indexes.
# May run: process.
LOCK_PROGRESS = """
    SELECT horizon::text AS horizon FROM chat.search_progress WHERE id = 1
    FOR NO KEY UPDATE SKIP LOCKED
"""

# May run: process.
SET_PROGRESS = "UPDATE chat.search_progress SET horizon = $1::text::xid8 WHERE id = 1"

# The chats that changed in a transaction not older than $1, at most $2.
# May run: process.
SELECT_CHANGED = """
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS oldest, changed.*
    FROM (VALUES (1)) AS one (row) LEFT JOIN LATERAL (
        SELECT e.chat_id, e.changed_xid::text AS changed_xid,
            e.history_version > coalesce(i.revision, 0) AS is_due
        FROM chat.chat_exec e LEFT JOIN chat.indexed_chats i ON i.chat_id = e.chat_id
        WHERE e.changed_xid >= $1::text::xid8
        ORDER BY e.changed_xid LIMIT $2) changed ON true
"""

# Deletions lock the same rows in the same order before they delete anything, so neither waits for
# what the other one holds. Turns do not wait: their updates are compatible with this lock.
# May run: process.
LOCK_DUE = """
    SELECT chat_id FROM chat.chat_exec WHERE chat_id = ANY ($1::uuid[])
    ORDER BY chat_id FOR KEY SHARE
"""

# Index the messages of some chats that changed since they were indexed. The owner is one of the
# words, so that a search reads only chats of its owner; no word of a text begins with a space.
# May run: process.
INDEX = f"""
    WITH due AS (
        SELECT c.id, c.owner_id, e.history_version, coalesce(i.revision, 0) AS revision
        FROM chat.chats c JOIN chat.chat_exec e ON e.chat_id = c.id
        LEFT JOIN chat.indexed_chats i ON i.chat_id = c.id
        WHERE c.id = ANY ($1::uuid[])),
    gone AS (
        DELETE FROM chat.message_words w USING due, chat.chat_messages said
        WHERE w.chat_id = due.id AND said.chat_id = w.chat_id AND said.id = w.message_id
            AND said.revision > due.revision AND said.is_deleted),
    written AS (
        INSERT INTO chat.message_words (chat_id, message_id, words)
        SELECT said.chat_id, said.id, to_tsvector('simple', text.text)
            || array_to_tsvector(ARRAY[' ' || due.owner_id])
        FROM due JOIN chat.chat_messages said ON said.chat_id = due.id
        CROSS JOIN LATERAL ({WRITTEN}) AS text (text)
        WHERE said.revision > due.revision AND {IS_SEARCHED} AND text.text IS NOT NULL
        ON CONFLICT (chat_id, message_id) DO UPDATE SET words = excluded.words)
    INSERT INTO chat.indexed_chats (chat_id, revision) SELECT due.id, due.history_version FROM due
    ON CONFLICT (chat_id) DO UPDATE SET revision = excluded.revision
"""


class SearchIndex:
    """The index in PostgreSQL."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def advance(self, chats_max: int = CHATS_MAX) -> bool:
        """Index the next chats that changed; return whether there may be more.

        Raises:
            DatabaseUnavailable: Nothing was indexed, or the outcome is unknown.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            horizon = await connection.fetchval(LOCK_PROGRESS)
            if horizon is None:
                return False
            rows = await connection.fetch(SELECT_CHANGED, horizon, chats_max)
            changed = [row for row in rows if row["chat_id"] is not None]
            due = [row["chat_id"] for row in changed if row["is_due"]]
            if due:
                await connection.execute(LOCK_DUE, due)
                await connection.execute(INDEX, due)
            oldest = int(rows[0]["oldest"])
            is_more = len(changed) == chats_max
            reached = min(oldest, int(changed[-1]["changed_xid"])) if is_more else oldest
            await connection.execute(SET_PROGRESS, str(reached))
        # Without progress the rest waits for transactions that are still open.
        return is_more and reached > int(horizon)
