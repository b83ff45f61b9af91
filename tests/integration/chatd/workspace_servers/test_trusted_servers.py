"""Trusted servers in PostgreSQL: one definition for each name, by the owner of the workspace."""

import pytest

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.domain.ids import OwnerId
from chatd.workspace_servers.store.trusted_servers import PostgresTrustedServers
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.postgres import Pool
from support.chatd.workspaces.stored_workspaces import HASH, IDS, LIMITS, fresh


async def test_only_the_owner_of_a_workspace_trusts_one_definition_of_a_name(pool: Pool) -> None:
    store, workspaces = PostgresTrustedServers(pool), PostgresWorkspaces(pool)
    made, _ = await workspaces.add(fresh(), HASH, LIMITS)
    assert await store.trusted(made.id) == {}
    await store.trust(made.id, "files", "first", made.owner_id)
    await store.trust(made.id, "files", "second", made.owner_id)
    await store.trust(made.id, "clock", "third", made.owner_id)
    assert await store.trusted(made.id) == {"files": "second", "clock": "third"}
    stranger = OwnerId(next(IDS))
    with pytest.raises(WorkspaceNotFound):
        await store.trust(made.id, "files", "other", stranger)
    with pytest.raises(WorkspaceNotFound):
        await store.trust(next(IDS), "files", "other", made.owner_id)
    await store.untrust(made.id, "files", stranger)
    assert await store.trusted(made.id) == {"files": "second", "clock": "third"}
    await store.untrust(made.id, "files", made.owner_id)
    await store.untrust(made.id, "files", made.owner_id)
    assert await store.trusted(made.id) == {"clock": "third"}


async def test_each_change_of_trust_is_one_event_of_the_audit_log(pool: Pool) -> None:
    store, workspaces = PostgresTrustedServers(pool), PostgresWorkspaces(pool)
    made, _ = await workspaces.add(fresh(), HASH, LIMITS)
    for digest in ("first", "first", "second"):
        await store.trust(made.id, "files", digest, made.owner_id)
    with pytest.raises(WorkspaceNotFound):
        await store.trust(made.id, "files", "other", OwnerId(next(IDS)))
    for owner_id in (OwnerId(next(IDS)), made.owner_id, made.owner_id):
        await store.untrust(made.id, "files", owner_id)
    rows = await pool.fetch(
        "SELECT action, object_id, details->>'name', details->>'digest' FROM chat.audit_outbox "
        "ORDER BY at"
    )

    assert [tuple(row) for row in rows] == [
        ("workspace.server_trusted", made.id, "files", "first"),
        ("workspace.server_trusted", made.id, "files", "second"),
        ("workspace.server_untrusted", made.id, "files", "second"),
    ]
