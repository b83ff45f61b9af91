"""Creations of workspaces that are cancelled, as by an interrupt or the deletion of a chat."""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any

import pytest

from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.workspace import Workspace
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.postgres import Database, Pool
from support.chatd.workspaces.stored_workspaces import DRIVER, HASH, fresh
from support.chatd.workspaces.workspace_values import workspace
from support.host.cancelled_at import cancelled_at_every_await

Create = Callable[[PostgresWorkspaces, Workspace], Coroutine[Any, Any, object]]
UNBOUNDED = QuotaLimits(live_workspaces=0, workspaces=0, created_per_minute=0)
#: Has an audit event, which its transaction records.
SPEC = replace(workspace().spec, secret_names=("deploy",))
COUNT = "SELECT (SELECT count(*) FROM chat.workspaces), (SELECT count(*) FROM chat.audit_outbox)"


async def by_request(store: PostgresWorkspaces, asked: Workspace) -> None:
    await store.add(asked, HASH, UNBOUNDED)


async def by_a_turn(store: PostgresWorkspaces, asked: Workspace) -> None:
    await store.add_scratch(asked, DRIVER, 15.0)


@pytest.mark.parametrize("create", [by_request, by_a_turn])
async def test_a_creation_that_is_cancelled_at_any_await_leaves_a_clean_connection(
    chat_database: str, pool: Pool, create: Create
) -> None:
    elsewhere, asked = PostgresWorkspaces(pool), list[Workspace]()
    # The pool has one connection here, so the next caller gets the one that was in use.
    async with (
        asyncio.timeout(120),
        Database.open(chat_database, application_name="t", connections_max=2) as database,
    ):
        store = PostgresWorkspaces(database.pool)

        def cancelled() -> Coroutine[Any, Any, object]:
            asked.append(fresh(f"cancelled-{len(asked)}", spec=SPEC))
            return create(store, asked[-1])

        async for _ in cancelled_at_every_await(cancelled):
            # It was written whole or not at all, and nothing of it is locked for other processes.
            await create(elsewhere, asked[-1])
            await create(store, fresh(f"next-{len(asked)}", spec=SPEC))
            made = 2 * len(asked)
            assert tuple(await pool.fetchrow(COUNT) or ()) == (made, made)
