"""Nothing of a deleted user is left in any table, wherever the deletion was cut off before."""

from collections.abc import Sequence

import pytest

from chatd.content.domain.tools import Executor, ExecutorUnreachable
from chatd.offboarding.engine.suspended_users import UserSuspension
from chatd.primitives.domain.ids import ExecutionId
from chatd.users.domain.status import UserStatus
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.workspace import State, WorkspaceId
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.api.chat.v1 import chat_service_pb2 as api
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.chats.chat_people import ANN_ID, BOB_ID
from support.chatd.chats.served_chats import ServedChats
from support.chatd.users.fixed_users import FixedUserStatuses
from support.chatd.users.suspension import suspension_of
from support.chatd.workspaces.workspace_values import workspace
from support.host.cancelled_at import cancelled_at_every_await

CANARY = "canary-7f3a"
CALL = ExecutionId("00000000-0000-0000-0000-0000000000c1")
WORKSPACE = WorkspaceId("00000000-0000-0000-0000-0000000000d1")

# One row of everything that belongs to a user and to no chat.
FILL = """
    WITH provider AS (
        INSERT INTO chat.providers (id, type, name, display_name, base_url, is_enabled,
            user_keys_allowed, options, request_hash, version, created_at)
        VALUES (gen_random_uuid(), 'openai', 'p', 'P', '', true, true, '{}', '', 1, now())
        RETURNING id),
    keys AS (
        INSERT INTO chat.provider_keys (id, provider_id, user_id, position, hint, sealed,
            sealed_key_id, request_hash, created_at)
        SELECT gen_random_uuid(), id, $1, 1, '7f3a', $2::text::bytea, 'k', '', now()
        FROM provider),
    secrets AS (
        INSERT INTO chat.secrets (id, owner_id, name, description, username, delivery, hosts,
            header, hint, sealed, sealed_key_id, version, request_hash, created_at, changed_at)
        VALUES (gen_random_uuid(), $1, $2, $2, $2, 'proxy', '{}', '', '', '', 'k', 1, '', now(),
            now())),
    uses AS (
        INSERT INTO chat.secret_uses (id, node_id, request_id, workspace_id, owner_id, secret_name,
            host, purpose, outcome, used_at)
        VALUES (gen_random_uuid(), gen_random_uuid(), 'r', gen_random_uuid(), $1, $2, 'h', 'p',
            'given', now())),
    settings AS (
        INSERT INTO chat.settings (scope, name, value)
        VALUES ($1, 'custom_prompt', to_json($2::text))),
    schedules AS (
        INSERT INTO chat.schedules (id, owner_id, owner_role, name, text, model_id,
            reasoning_effort, mode, is_unattended, cron, time_zone, missed_runs, runs_max, state,
            pause_reason, next_run_at, runs_count, failures_count, request_hash, created_at)
        VALUES (gen_random_uuid(), $1, 'member', $2, $2, '', '', '', false, '0 0 1 1 *', '',
            'skip', 0, 'active', '', now(), 0, 0, '', now())),
    devices AS (
        INSERT INTO chat.push_subscriptions (id, owner_id, name, host, endpoint_hash, sealed,
            sealed_key_id, request_id, request_hash, created_at, last_error)
        VALUES (gen_random_uuid(), $1, $2, 'h', '', '', 'k', gen_random_uuid(), '', now(), '')),
    skills AS (
        INSERT INTO chat.skills (owner_id, name, description, body, updated_at)
        VALUES ($1, $2, $2, $2, now())),
    rules AS (
        INSERT INTO chat.approval_rules (id, scope, user_id, effect, tool, modes, command,
            arguments, reason, is_rememberable, is_for_tainted, digest, version, request_hash,
            created_at)
        VALUES (gen_random_uuid(), 'user', $1, 'ask', 'execute', '{}', $2, '{}', $2, true, false,
            '', 1, '', now())),
    accesses AS (
        INSERT INTO chat.break_glass (id, administrator_id, owner_id, reason, request_hash,
            opened_at, expires_at, changed_xid)
        VALUES (gen_random_uuid(), $3, $1, $2, '', now(), now() + interval '1 hour',
            pg_current_xact_id())),
    limits AS (
        INSERT INTO chat.spend_limits (subject_kind, subject_id, limit_micros, period)
        VALUES ('user', $1, 5, 'day'))
    INSERT INTO chat.files (id, owner_id, name, media_type, sha256, data, created_at)
    VALUES (gen_random_uuid(), $1, $2, 'text/plain', '', $2::text::bytea, now())
"""
ADD_CALL = """
    INSERT INTO chat.tool_calls (execution_id, chat_id, message_id, tool_call_id, tool_name,
        executor, owner_epoch, journal_generation, dispatched_at)
    VALUES ($1, $2, 1, 'c', 'demo__echo', 'mcpgateway', 1, 'g', now())
"""


async def fill(served: ServedChats) -> None:
    """Let Ann leave the canary everywhere, and Bob have a chat of his own."""
    chat = await served.ann.create(CANARY)
    await served.finish(chat.id, f"you said {CANARY}")
    await served.pool.execute(ADD_CALL, CALL, chat.id)
    await served.pool.execute(FILL, ANN_ID, CANARY, BOB_ID)
    await served.pool.execute(
        "UPDATE chat.chats SET title = $2, summary = $2 WHERE id = $1", chat.id, CANARY
    )
    store = PostgresWorkspaces(served.pool)
    made = workspace(State.DELETED, id=WORKSPACE, name=CANARY, owner_id=ANN_ID, node_id=None)
    await store.add(made, b"", QuotaLimits())
    await served.bob.create("nothing of hers")


async def tables_with(pool: Pool, text: str) -> list[str]:
    """Return every table of the schema of which a row has a text in any column."""
    tables = await pool.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'chat'")
    hexadecimal = text.encode().hex()
    return [
        row["tablename"]
        for row in tables
        if await pool.fetchval(
            f"SELECT EXISTS (SELECT 1 FROM chat.{row['tablename']} AS each"
            " WHERE strpos(each::text, $1) > 0 OR strpos(each::text, $2) > 0)",
            text,
            hexadecimal,
        )
    ]


def deleting(served: ServedChats) -> UserSuspension:
    statuses = FixedUserStatuses({ANN_ID: UserStatus.DELETED, BOB_ID: UserStatus.ACTIVE})
    return suspension_of(served, statuses, FakeClock())


async def test_no_table_has_anything_of_a_deleted_user(served: ServedChats) -> None:
    await fill(served)
    found = await tables_with(served.pool, CANARY)
    kept = {
        "approval_rules",
        "break_glass",
        "chat_messages",
        "chats",
        "files",
        "provider_keys",
        "push_subscriptions",
        "schedules",
        "secret_uses",
        "secrets",
        "settings",
        "skills",
        "workspaces",
    }
    assert kept <= set(found)
    dropped: list[tuple[str, tuple[ExecutionId, ...]]] = []

    async def drop(generation: str, execution_ids: Sequence[ExecutionId]) -> None:
        dropped.append((generation, tuple(execution_ids)))

    suspension = deleting(served)
    suspension.connect(drop)
    await suspension.on_notice(ANN_ID)
    assert await tables_with(served.pool, CANARY) == []
    assert dropped == [("g", (CALL,))]
    limits = await served.pool.fetchval("SELECT count(*) FROM chat.spend_limits")
    keys = await served.pool.fetchval("SELECT count(*) FROM chat.provider_keys")
    bobs = await served.pool.fetchval("SELECT count(*) FROM chat.chats WHERE owner_id = $1", BOB_ID)
    assert (limits, keys, bobs) == (0, 0, 1)


async def test_a_deletion_that_was_cut_off_anywhere_is_completed(served: ServedChats) -> None:
    await fill(served)
    cuts = 0
    async for _ in cancelled_at_every_await(lambda: deleting(served).on_notice(ANN_ID)):
        cuts += 1
        await deleting(served).on_notice(ANN_ID)
        assert await tables_with(served.pool, CANARY) == []
        await served.pool.execute("DELETE FROM chat.providers")
        await fill(served)
    assert cuts > 5


async def test_a_chat_waits_until_the_journal_of_its_calls_answers(served: ServedChats) -> None:
    await fill(served)

    async def unreachable(generation: str, execution_ids: Sequence[ExecutionId]) -> None:
        raise ExecutorUnreachable(Executor.MCPGATEWAY)

    suspension = deleting(served)
    suspension.connect(unreachable)
    await suspension.on_notice(ANN_ID)
    assert "chat_messages" in await tables_with(served.pool, CANARY)
    suspension = deleting(served)
    await suspension.on_notice(ANN_ID)
    assert await tables_with(served.pool, CANARY) == []


#: What a user may have without a chat; a row in any of them finds a user who was deleted.
WITHOUT_CHATS = (
    "approval_rules",
    "break_glass",
    "files",
    "provider_keys",
    "push_subscriptions",
    "schedules",
    "secrets",
    "settings",
    "skills",
    "spend_limits",
)


@pytest.mark.parametrize("table", WITHOUT_CHATS)
async def test_a_deleted_user_without_chats_is_found_without_a_notice(
    served: ServedChats, table: str
) -> None:
    await served.pool.execute(FILL, ANN_ID, CANARY, BOB_ID)
    for other in (*WITHOUT_CHATS, "secret_uses"):
        if other != table:
            await served.pool.execute(f"DELETE FROM chat.{other}")
    suspension = deleting(served)
    await suspension._check_all_users(0.0)
    await suspension._settle()
    assert await served.pool.fetchval(f"SELECT count(*) FROM chat.{table}") == 0


async def test_a_deleted_user_with_whom_a_chat_is_shared_is_found_without_a_notice(
    served: ServedChats,
) -> None:
    chat = await served.bob.create()
    share = api.Share(user_id=ANN_ID)
    await served.bob.ask(api.SetSharesRequest(request_id="s", chat_id=chat.id, shares=(share,)))
    suspension = deleting(served)
    await suspension._check_all_users(0.0)
    await suspension._settle()
    assert await served.pool.fetchval("SELECT count(*) FROM chat.chat_shares") == 0


async def test_accesses_of_a_deleted_administrator_end_and_stay_for_the_users(
    served: ServedChats,
) -> None:
    await served.pool.execute(FILL, BOB_ID, "about Bob", ANN_ID)
    suspension = deleting(served)
    await suspension._check_all_users(0.0)
    await suspension._settle()
    (access,) = await served.pool.fetch("SELECT * FROM chat.break_glass")
    assert (str(access["administrator_id"]), str(access["owner_id"])) == (ANN_ID, BOB_ID)
    assert (access["reason"], access["ended_at"] is None) == ("about Bob", False)
