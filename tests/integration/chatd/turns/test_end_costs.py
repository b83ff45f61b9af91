"""What the end of a worker reads and locks in a database that has many other chats."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from chatd.chats.store.codec import error_to_json
from chatd.turns.store.workers import END
from chatd.workers.domain import CRASH_LOOP
from parley.postgres import Pool

CHATS, CHATS_FULL_SIZE = 10_000, 100_000
OWN, OTHERS = 3, 500
# A plan that reads the index of running chats in its order meets those of the other worker first.
OTHER = "00000000-0000-0000-0000-0000000000aa"
WORKER = "00000000-0000-0000-0000-0000000000bb"

INSERT_WORKER = """
    INSERT INTO chat.workers (id, address, is_draining, lease_until, started_at)
    VALUES ($1, '', false, now() + interval '1 minute', now())
"""
INSERT_CHATS = """
    INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, root_chat_id, model_id,
        reasoning_effort, mode, labels, client_tools, pin_order, summary, last_turn_summary,
        last_read_message_id, created_at)
    SELECT id, id, 'member', 'title', false, id, '', '', '', '{}', '[]', 0, '', '', 0, now()
    FROM (SELECT lpad(to_hex(n), 32, '0')::uuid AS id FROM generate_series(1, $1::int) AS n) AS ids
"""
# The chats of the two workers are spread over the table, as those of a real one.
INSERT_EXECUTIONS = """
    INSERT INTO chat.chat_exec (chat_id, status, archived, snapshot_version, history_version,
        queue_version, retry_version, generation_attempt, next_message_id, turn_id, queue_length,
        owner_epoch, worker_id, takeovers, pending, compactions, is_compaction_requested,
        changed_at, changed_xid)
    SELECT id, CASE WHEN worker_id IS NULL THEN 'waiting' ELSE 'running' END, false, 1, 1, 0, 0, 0,
        2, 1, 0, 1, worker_id, 0, '[]', 0, false, now(), pg_current_xact_id()
    FROM (SELECT id, CASE WHEN place < $1 THEN $3::uuid WHEN place < $1 + $2 THEN $4::uuid END
            AS worker_id
        FROM (SELECT id, row_number() OVER (ORDER BY md5(id::text)) - 1 AS place
            FROM chat.chats) AS placed) AS chosen
"""


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield all nodes of a plan."""
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


async def test_the_end_of_a_worker_reads_and_locks_its_own_chats_only(
    pool: Pool, request: pytest.FixtureRequest
) -> None:
    chats = CHATS_FULL_SIZE if request.config.getoption("--full-size") else CHATS
    for worker_id in (WORKER, OTHER):
        await pool.execute(INSERT_WORKER, worker_id)
    await pool.execute(INSERT_CHATS, chats)
    await pool.execute(INSERT_EXECUTIONS, OWN, OTHERS, WORKER, OTHER)
    await pool.execute("ANALYZE chat.chats, chat.chat_exec, chat.workers")
    query = f"EXPLAIN (ANALYZE, FORMAT JSON) {END}"
    explained = await pool.fetchval(query, WORKER, error_to_json(CRASH_LOOP))
    found = list(nodes(json.loads(explained)[0]["Plan"]))
    (locking,) = (each for each in found if each["Node Type"] == "LockRows")
    (sorting,) = locking["Plans"]
    assert (sorting["Node Type"], sorting["Actual Rows"], locking["Actual Rows"]) == (
        "Sort",
        OWN,
        OWN,
    )
    of_chats = [each for each in found if each.get("Relation Name") in ("chats", "chat_exec")]
    assert [each for each in of_chats if each["Node Type"] == "Seq Scan"] == []
    rows = [each["Actual Rows"] * each["Actual Loops"] for each in of_chats]
    assert max(rows) <= OWN + OTHERS
