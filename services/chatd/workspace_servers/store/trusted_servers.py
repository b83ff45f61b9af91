"""Trusted workspace servers in PostgreSQL: a definition by its digest, for one workspace."""

from collections.abc import Mapping

import asyncpg

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.store.audit_outbox import record_event
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Pool

# For the turns of the workspace's chats, and for its readers after they were checked.
# May run: process.
TRUSTED = "SELECT name, digest FROM chat.trusted_servers WHERE workspace_id = $1"

# Whether the definition is another one than was trusted before is returned.
# May run: owner.
TRUST = """
    WITH known AS (
        SELECT digest FROM chat.trusted_servers WHERE workspace_id = $1 AND name = $2
    )
    INSERT INTO chat.trusted_servers (workspace_id, name, digest, user_id, trusted_at)
    SELECT id, $2, $3, $4::uuid, clock_timestamp() FROM chat.workspaces
    WHERE id = $1 AND owner_id = $4::uuid
    ON CONFLICT (workspace_id, name) DO UPDATE SET digest = excluded.digest,
        user_id = excluded.user_id, trusted_at = excluded.trusted_at
    RETURNING digest IS DISTINCT FROM (SELECT known.digest FROM known) AS is_changed
"""

# May run: owner.
UNTRUST = """
    DELETE FROM chat.trusted_servers AS trusted USING chat.workspaces AS workspace
    WHERE trusted.workspace_id = $1 AND trusted.name = $2
        AND workspace.id = trusted.workspace_id AND workspace.owner_id = $3::uuid
    RETURNING trusted.digest
"""


class PostgresTrustedServers:
    """Stores which definitions the owners of workspaces trust."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def trusted(self, workspace_id: str) -> Mapping[str, str]:
        """Return the digests of the trusted servers of a workspace, by name."""
        rows = await self._pool.fetch(TRUSTED, workspace_id)
        return {row["name"]: row["digest"] for row in rows}

    async def trust(self, workspace_id: str, name: str, digest: str, owner_id: OwnerId) -> None:
        """Trust a definition, in place of an earlier one of the same name.

        Raises:
            WorkspaceNotFound: The user has no such workspace.
        """
        try:
            async with self._pool.acquire() as connection, connection.transaction():
                is_changed = await connection.fetchval(TRUST, workspace_id, name, digest, owner_id)
                if is_changed is None:
                    raise WorkspaceNotFound(workspace_id)
                if is_changed:
                    action = AuditAction.WORKSPACE_SERVER_TRUSTED
                    await record_event(connection, _event(action, workspace_id, name, digest))
        except asyncpg.ForeignKeyViolationError as gone:
            raise WorkspaceNotFound(workspace_id) from gone

    async def untrust(self, workspace_id: str, name: str, owner_id: OwnerId) -> None:
        """Trust a server no longer; does nothing if it is not trusted."""
        async with self._pool.acquire() as connection, connection.transaction():
            digest = await connection.fetchval(UNTRUST, workspace_id, name, owner_id)
            if digest is not None:
                action = AuditAction.WORKSPACE_SERVER_UNTRUSTED
                await record_event(connection, _event(action, workspace_id, name, digest))


def _event(action: AuditAction, workspace_id: str, name: str, digest: str) -> AuditEvent:
    return AuditEvent(action, workspace_id, details={"name": name, "digest": digest})
