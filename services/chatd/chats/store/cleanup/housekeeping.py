"""Deletes expired rows in small batches, in one process at a time."""

from datetime import timedelta

from parley.postgres import Pool

KEYS_KEPT = timedelta(hours=24)  # How long a client may repeat a request.
WORKERS_KEPT = timedelta(days=1)
FILES_KEPT = timedelta(days=7)  # For a message that is not sent yet.
WORKSPACES_KEPT = timedelta(days=30)  # For a node that returns and must clean up.
USES_KEPT = timedelta(days=90)
# Per workspace: heavy use of secrets evicts only records of the same workspace.
USES_MAX = 100_000

# One process at a time; the others do not wait.
# May run: no-rows.
TRY_TO_BEGIN = "SELECT pg_try_advisory_xact_lock(hashtextextended('chat housekeeping', 0))"

# Keys that are too old to be repeated; for no user.
# May run: process.
DELETE_KEYS = """
    WITH gone AS (
        DELETE FROM chat.client_keys WHERE (chat_id, key) IN (
            SELECT chat_id, key FROM chat.client_keys
            WHERE created_at < clock_timestamp() - $1::interval
            ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone
"""

# Pieces of answers whose episode is over: their chat rests, or has another episode.
# May run: process.
DELETE_PARTIALS = """
    WITH over AS MATERIALIZED (
        SELECT p.chat_id, p.history_version, p.generation_attempt, p.first_seq
        FROM chat.chat_partials p JOIN chat.chat_exec e ON e.chat_id = p.chat_id
        WHERE e.status NOT IN ('running', 'interrupting')
            OR (e.history_version, e.generation_attempt)
                <> (p.history_version, p.generation_attempt)
        LIMIT $1 FOR UPDATE OF p SKIP LOCKED),
    gone AS (
        DELETE FROM chat.chat_partials p USING over
        WHERE (p.chat_id, p.history_version, p.generation_attempt, p.first_seq)
            = (over.chat_id, over.history_version, over.generation_attempt, over.first_seq)
        RETURNING 1)
    SELECT count(*) FROM gone
"""

# Workers that ended long ago; a chat that still names one has been free ever since.
# May run: process.
DELETE_WORKERS = """
    WITH gone AS (
        DELETE FROM chat.workers WHERE id IN (
            SELECT id FROM chat.workers WHERE lease_until < clock_timestamp() - $1::interval
            LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone
"""

# Workspaces that were deleted long ago, with their logs. One that has the id of a chat, or that a
# chat names, is kept to show that chat that it was deleted.
# May run: process.
DELETE_WORKSPACES = """
    WITH gone AS (
        DELETE FROM chat.workspaces WHERE id IN (
            SELECT w.id FROM chat.workspaces w
            WHERE w.state = 'deleted' AND w.changed_at < clock_timestamp() - $1::interval
                AND NOT EXISTS (SELECT 1 FROM chat.chats c WHERE c.id = w.id)
                AND (w.is_scratch_of_chat
                    OR NOT EXISTS (SELECT 1 FROM chat.chats c WHERE c.workspace_id = w.id))
            LIMIT $2 FOR UPDATE OF w SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone
"""

# Files that are linked to no chat; the lock prevents new links. For no user.
# May run: process.
LOCK_UNHELD = """
    SELECT f.id FROM chat.files f
    WHERE f.created_at < clock_timestamp() - $1::interval
        AND NOT EXISTS (SELECT 1 FROM chat.chat_files held WHERE held.file_id = f.id)
    LIMIT $2 FOR UPDATE SKIP LOCKED
"""

# Those of the locked files that were not linked before the lock.
# May run: process.
DELETE_UNHELD = """
    WITH gone AS (
        DELETE FROM chat.files f WHERE f.id = ANY ($1::uuid[])
            AND NOT EXISTS (SELECT 1 FROM chat.chat_files held WHERE held.file_id = f.id)
        RETURNING 1)
    SELECT count(*) FROM gone
"""

# Old records of uses of secrets; for no user.
# May run: process.
DELETE_OLD_USES = """
    WITH gone AS (
        DELETE FROM chat.secret_uses WHERE id IN (
            SELECT id FROM chat.secret_uses WHERE used_at < clock_timestamp() - $1::interval
            ORDER BY used_at LIMIT $2 FOR UPDATE SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone
"""

# The oldest records of workspaces with too many, among the workspaces with recent uses.
# May run: process.
DELETE_CROWDED_USES = """
    WITH active AS MATERIALIZED (
        SELECT DISTINCT workspace_id FROM (
            SELECT workspace_id FROM chat.secret_uses ORDER BY used_at DESC LIMIT 10000) latest),
    surplus AS MATERIALIZED (
        SELECT workspace_id, (
            SELECT u.used_at FROM chat.secret_uses u WHERE u.workspace_id = active.workspace_id
            ORDER BY u.used_at DESC OFFSET $1 LIMIT 1) AS until
        FROM active),
    gone AS (
        DELETE FROM chat.secret_uses WHERE id IN (
            SELECT u.id FROM chat.secret_uses u JOIN surplus ON surplus.until >= u.used_at
                AND surplus.workspace_id = u.workspace_id
            ORDER BY u.used_at LIMIT $2 FOR UPDATE OF u SKIP LOCKED)
        RETURNING 1)
    SELECT count(*) FROM gone
"""


class PostgresHousekeeping:
    """Deletes keys, partial answers, workers, workspaces, files and records of uses."""

    def __init__(self, pool: Pool, *, uses_max: int = USES_MAX) -> None:
        self._pool = pool
        self._uses_max = uses_max

    async def delete_expired(self, rows_max: int) -> bool:
        """Delete at most `rows_max` rows of each kind; return whether there may be more.

        Does nothing while another process deletes.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if not await connection.fetchval(TRY_TO_BEGIN):
                return False
            unheld = await connection.fetch(LOCK_UNHELD, FILES_KEPT, rows_max)
            removed: tuple[int, ...] = (
                await connection.fetchval(DELETE_KEYS, KEYS_KEPT, rows_max),
                await connection.fetchval(DELETE_PARTIALS, rows_max),
                await connection.fetchval(DELETE_WORKERS, WORKERS_KEPT, rows_max),
                await connection.fetchval(DELETE_WORKSPACES, WORKSPACES_KEPT, rows_max),
                await connection.fetchval(DELETE_UNHELD, [row["id"] for row in unheld]),
                await connection.fetchval(DELETE_OLD_USES, USES_KEPT, rows_max),
                await connection.fetchval(DELETE_CROWDED_USES, self._uses_max, rows_max),
            )
        return max(removed) >= rows_max
