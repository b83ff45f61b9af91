"""Shares of root chats; only the owner reads and changes them."""

from collections.abc import Callable

import asyncpg

from chatd.chats.domain.views import Share
from chatd.primitives.domain.errors import ChatNotFound, InvalidRequest
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.store.audit_outbox import record_event
from chatd.users.domain.grantees import Grantee, GranteeKind
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Connection, Pool

# Whether a chat is a root, for its owner; locked against concurrent changes of its shares.
# May run: owner.
LOCK_SHARED = """
    SELECT parent_chat_id IS NULL FROM chat.chats WHERE id = $1 AND owner_id = $2
    FOR NO KEY UPDATE
"""

# The shares of a chat whose owner was checked, the oldest first.
# May run: checked by LOCK_SHARED.
SELECT_SHARES = """
    SELECT grantee_kind, grantee_id, created_at FROM chat.chat_shares
    WHERE chat_id = $1 ORDER BY created_at, grantee_kind, grantee_id
"""

# Delete shares that are no longer wanted; the owner was checked. Feeds read what was revoked.
# May run: checked by LOCK_SHARED.
DELETE_SHARES = """
    WITH revoked AS (
        DELETE FROM chat.chat_shares share WHERE share.chat_id = $1 AND NOT EXISTS (
            SELECT 1 FROM unnest($2::text[], $3::uuid[]) AS wanted (kind, id)
            WHERE wanted.kind = share.grantee_kind AND wanted.id = share.grantee_id)
        RETURNING share.grantee_kind, share.grantee_id),
    noted AS (
        INSERT INTO chat.revoked_shares (chat_id, grantee_id, changed_xid, revoked_at)
        SELECT $1, grantee_id, pg_current_xact_id(), clock_timestamp() FROM revoked
        ON CONFLICT (chat_id, grantee_id) DO UPDATE SET changed_xid = excluded.changed_xid,
            revoked_at = excluded.revoked_at)
    SELECT grantee_kind, grantee_id FROM revoked
"""

# Insert new shares; existing ones keep their time. The owner was checked.
# May run: checked by LOCK_SHARED.
INSERT_SHARES = """
    INSERT INTO chat.chat_shares (chat_id, grantee_kind, grantee_id, created_at)
    SELECT $1, wanted.kind, wanted.id, clock_timestamp()
    FROM unnest($2::text[], $3::uuid[]) AS wanted (kind, id)
    ON CONFLICT DO NOTHING RETURNING grantee_kind, grantee_id
"""


class Shares:
    """Shares in PostgreSQL.

    `metadata_changed` is called with every chat whose shares changed, after the commit.
    """

    def __init__(
        self, pool: Pool, metadata_changed: Callable[[ChatId], None] = lambda _: None
    ) -> None:
        self._pool = pool
        self._metadata_changed = metadata_changed

    async def get(self, chat_id: ChatId, *, owner_id: OwnerId) -> tuple[Share, ...]:
        """Return the shares of a root chat.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            InvalidRequest: It is a child, which is shared with its root.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await self._lock(connection, chat_id, owner_id)
            rows = await connection.fetch(SELECT_SHARES, chat_id)
        return tuple(map(_share_of, rows))

    async def replace(
        self, chat_id: ChatId, *, owner_id: OwnerId, grantees: tuple[Grantee, ...]
    ) -> tuple[Share, ...]:
        """Share a root chat with exactly these grantees.

        Raises:
            ChatNotFound: There is no such chat of this owner.
            InvalidRequest: It is a child, which is shared with its root.
        """
        wanted = ([each.kind for each in grantees], [each.id for each in grantees])
        async with self._pool.acquire() as connection, connection.transaction():
            await self._lock(connection, chat_id, owner_id)
            removed = await connection.fetch(DELETE_SHARES, chat_id, *wanted)
            added = await connection.fetch(INSERT_SHARES, chat_id, *wanted)
            rows = await connection.fetch(SELECT_SHARES, chat_id)
            for action, changed in (
                (AuditAction.CHAT_UNSHARED, removed),
                (AuditAction.CHAT_SHARED, added),
            ):
                for row in changed:
                    await record_event(connection, _event(action, chat_id, row))
        self._metadata_changed(chat_id)
        return tuple(map(_share_of, rows))

    async def _lock(
        self,
        connection: Connection,
        chat_id: ChatId,
        owner_id: OwnerId,
    ) -> None:
        is_root = await connection.fetchval(LOCK_SHARED, chat_id, owner_id)
        if is_root is None:
            raise ChatNotFound(chat_id)
        if not is_root:
            raise InvalidRequest("chat_id", "is a child; share the root of its family")


def _event(action: AuditAction, chat_id: ChatId, row: asyncpg.Record) -> AuditEvent:
    grantee_id = str(row["grantee_id"])
    if row["grantee_kind"] == GranteeKind.USER:
        return AuditEvent(action, chat_id, grantee_id)
    return AuditEvent(action, chat_id, details={"group_id": grantee_id})


def _share_of(row: asyncpg.Record) -> Share:
    grantee = Grantee(GranteeKind(row["grantee_kind"]), str(row["grantee_id"]))
    return Share(grantee, row["created_at"])
