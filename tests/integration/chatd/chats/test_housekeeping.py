"""What is over goes in small batches, what may still be needed stays, and one process does it."""

import asyncio

from chatd.chats.domain.chat import ChatState, Status
from chatd.chats.domain.pieces import Chunk, Piece
from chatd.chats.store.attachments import INSERT_LINKS, Attachments
from chatd.chats.store.cleanup.housekeeping import TRY_TO_BEGIN, PostgresHousekeeping
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, WorkerId
from chatd.streams.store.partials import PostgresPartials
from chatd.workspaces.domain.commands import Remove
from chatd.workspaces.domain.ports import LogLine
from chatd.workspaces.domain.quota import QuotaLimits
from chatd.workspaces.domain.workspace import WorkspaceId
from chatd.workspaces.store.workspaces import PostgresWorkspaces
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat
from support.chatd.workspaces.workspace_values import workspace

RUNS = ChatId("00000000-0000-0000-0000-000000000001")
RESTS = ChatId("00000000-0000-0000-0000-000000000002")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
PIECES = (Piece(Role.ASSISTANT, 0, Text("hello")),)
RUNNING = ChatState(RUNS, Status.RUNNING, 5, 4, 2, MessageId(3), owner_epoch=1, worker_id=WORKER)
RESTING = ChatState(RESTS, Status.WAITING, 5, 4, 0, MessageId(3))

ADD_KEY = """
    INSERT INTO chat.client_keys (chat_id, key, body_hash, snapshot_version, outcome, created_at)
    VALUES ($1, $2, '', 1, '{}', now() - make_interval(hours => $3))
"""
ADD_WORKER = """
    INSERT INTO chat.workers (id, address, is_draining, lease_until, started_at)
    VALUES ($1, 'unix:/nowhere', false, now() - make_interval(hours => $2), now())
"""
ADD_FILE = """
    INSERT INTO chat.files (id, owner_id, name, media_type, sha256, data, created_at)
    VALUES ($1, $2, 'a.txt', 'text/plain', '', 'a', now() - make_interval(hours => $3))
"""
ADD_USE = """
    INSERT INTO chat.secret_uses (id, node_id, request_id, workspace_id, secret_name, host, purpose,
        outcome, used_at)
    VALUES (gen_random_uuid(), $1, $2, $1, 'deploy', 'github.com:443', 'GET /', 'given',
        now() - make_interval(days => $3))
"""


def file_id(number: int) -> str:
    return f"00000000-0000-0000-0001-{number:012}"


async def fill(pool: Pool) -> None:
    """Store some of everything, old and young."""
    for state in (RUNNING, RESTING):
        await insert_chat(pool, state, ANN)
    for key, age_h in (("oldest", 80), ("old", 25), ("young", 23)):
        await pool.execute(ADD_KEY, RUNS, key, age_h)
    for number, age_h in ((1, 80), (2, 25), (3, 23), (4, -1)):
        await pool.execute(ADD_WORKER, f"00000000-0000-0000-0000-00000000000{number}", age_h)
    await PostgresPartials(pool).add(
        tuple(
            Chunk(chat_id, history_version, attempt, seq, PIECES)
            for chat_id, history_version, attempt in (
                (RUNS, 4, 2),
                (RUNS, 4, 1),
                (RUNS, 3, 2),
                (RESTS, 4, 0),
            )
            for seq in (1, 2)
        )
    )


async def left(pool: Pool) -> tuple[list[str], list[int], list[object]]:
    """Return the keys, the workers and the episodes that are stored."""
    keys = await pool.fetch("SELECT key FROM chat.client_keys ORDER BY created_at")
    workers = await pool.fetch("SELECT id::text AS id FROM chat.workers ORDER BY id")
    episodes = await pool.fetch(
        "SELECT DISTINCT chat_id::text AS chat_id, history_version, generation_attempt"
        " FROM chat.chat_partials ORDER BY chat_id, history_version, generation_attempt"
    )
    return (
        [row["key"] for row in keys],
        [int(row["id"][-1]) for row in workers],
        [tuple(row) for row in episodes],
    )


TIDY = (["young"], [3, 4], [(RUNS, 4, 2)])


async def test_only_what_is_over_goes(pool: Pool) -> None:
    await fill(pool)
    assert not await PostgresHousekeeping(pool).delete_expired(1000)
    assert await left(pool) == TIDY


async def test_a_batch_is_bounded_and_the_oldest_keys_go_first(
    pool: Pool,
) -> None:
    await fill(pool)
    housekeeping = PostgresHousekeeping(pool)
    assert await housekeeping.delete_expired(1)
    keys, workers, _ = await left(pool)
    assert (keys, len(workers)) == (["old", "young"], 3)
    assert await pool.fetchval("SELECT count(*) FROM chat.chat_partials") == 7
    while await housekeeping.delete_expired(1):
        pass
    assert await left(pool) == TIDY


async def test_while_one_process_tidies_another_does_nothing(
    pool: Pool,
) -> None:
    await fill(pool)
    before = await left(pool)
    housekeeping = PostgresHousekeeping(pool)
    async with asyncio.timeout(5), pool.acquire() as other, other.transaction():
        assert await other.fetchval(TRY_TO_BEGIN)
        assert not await housekeeping.delete_expired(1000)
        assert await left(pool) == before
    await housekeeping.delete_expired(1000)
    assert await left(pool) == TIDY


async def test_what_somebody_else_holds_is_left_for_the_next_round(
    pool: Pool,
) -> None:
    await fill(pool)
    housekeeping = PostgresHousekeeping(pool)
    async with asyncio.timeout(5), pool.acquire() as other, other.transaction():
        await other.execute("SELECT 1 FROM chat.client_keys WHERE key = 'old' FOR UPDATE")
        assert not await housekeeping.delete_expired(1000)
    assert (await left(pool))[0] == ["old", "young"]
    await housekeeping.delete_expired(1000)
    assert await left(pool) == TIDY


async def test_files_that_no_chat_holds_go_after_a_week(
    pool: Pool,
) -> None:
    await insert_chat(pool, RESTING, ANN)
    for number, age_h in ((1, 200), (2, 169), (3, 167), (4, 200)):
        await pool.execute(ADD_FILE, file_id(number), ANN.id, age_h)
    await Attachments(pool).hold(RESTS, (file_id(4),), owner_id=ANN.id)
    housekeeping = PostgresHousekeeping(pool)
    async with asyncio.timeout(5), pool.acquire() as other, other.transaction():
        # A message with it is being sent.
        await other.execute(INSERT_LINKS, RESTS, [file_id(2)])
        assert not await housekeeping.delete_expired(1000)
    rows = await pool.fetch("SELECT id::text AS id FROM chat.files ORDER BY id")
    assert [row["id"] for row in rows] == [file_id(number) for number in (2, 3, 4)]
    await pool.execute("DELETE FROM chat.chats")
    assert await housekeeping.delete_expired(1)
    while await housekeeping.delete_expired(1):
        pass
    rows = await pool.fetch("SELECT id::text AS id FROM chat.files")
    assert [row["id"] for row in rows] == [file_id(3)]


async def uses(pool: Pool) -> list[str]:
    """Return the uses of secrets that are on record, newest first."""
    rows = await pool.fetch("SELECT request_id FROM chat.secret_uses ORDER BY used_at DESC")
    return [row["request_id"] for row in rows]


async def test_the_record_of_uses_is_kept_for_ninety_days(
    pool: Pool,
) -> None:
    for name, age_days in (("oldest", 200), ("old", 91), ("kept", 89), ("young", 0)):
        await pool.execute(ADD_USE, RUNS, name, age_days)
    housekeeping = PostgresHousekeeping(pool)
    assert await housekeeping.delete_expired(1)
    assert await uses(pool) == ["young", "kept", "old"]
    assert not await housekeeping.delete_expired(1000)
    assert await uses(pool) == ["young", "kept"]


async def test_a_workspace_that_uses_secrets_without_end_pushes_out_its_own_record_alone(
    pool: Pool,
) -> None:
    await pool.execute(ADD_USE, RESTS, "another's", 80)
    for age_days in range(10):
        await pool.execute(ADD_USE, RUNS, str(age_days), age_days)
    housekeeping = PostgresHousekeeping(pool, uses_max=4)
    while await housekeeping.delete_expired(2):
        pass
    assert await uses(pool) == ["0", "1", "2", "3", "another's"]


async def test_workspaces_are_forgotten_a_month_after_they_were_deleted_unless_a_chat_has_them(
    pool: Pool,
) -> None:
    store = PostgresWorkspaces(pool)
    await insert_chat(pool, RUNNING, ANN)
    chat_id = RUNS
    names = ("old", "young", "kept", "named")
    ids = {name: f"00000000-0000-4000-9000-{number:012}" for number, name in enumerate(names)}
    ids["of a chat"] = chat_id
    for name, workspace_id in ids.items():
        made = workspace(id=WorkspaceId(workspace_id), name=name.replace(" ", "-"))
        await store.add(made, b"", QuotaLimits(live_workspaces=0))
        await store.log(workspace_id, 1, [LogLine(1, made.created_at, "setup", "a line")])
        if name != "kept":
            await store.apply(workspace_id, Remove())
    bind = "UPDATE chat.chats SET workspace_id = $2 WHERE id = $1"
    await pool.execute(bind, chat_id, ids["named"])
    aged = (
        "UPDATE chat.workspaces SET changed_at = now() - interval '31 days' WHERE name <> 'young'"
    )
    await pool.execute(aged)
    await PostgresHousekeeping(pool).delete_expired(1000)
    rows = await pool.fetch("SELECT name FROM chat.workspaces ORDER BY name")
    assert [row["name"] for row in rows] == ["kept", "named", "of-a-chat", "young"]
    logged = await pool.fetch("SELECT DISTINCT workspace_id::text AS id FROM chat.workspace_logs")
    assert {row["id"] for row in logged} == set(ids.values()) - {ids["old"]}
