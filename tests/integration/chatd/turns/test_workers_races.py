"""Workers that meet over the same chats in PostgreSQL, and renewals over a bad connection."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chatd.chats.domain.chat import ChatState, Retry, Status
from chatd.chats.store.codec import retry_to_json
from chatd.content.domain.messages import ErrorKind, TurnError
from chatd.content.domain.parts import Fallback
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, WorkerId
from chatd.turns.store.workers import PARK, SWEEP, PostgresWorkers
from chatd.workers.domain import SweepLimits
from parley.postgres import DatabaseUnavailable, Pool, Session
from support.chatd.chats.chat_rows import insert_chat
from support.database.conflicts import RETRIES
from support.database.taken_pool import all_taken

ONE = WorkerId("00000000-0000-0000-0000-0000000000aa")
TWO = WorkerId("00000000-0000-0000-0000-0000000000bb")
DEAD = WorkerId("00000000-0000-0000-0000-0000000000dd")
FIRST = ChatId("00000000-0000-0000-0000-000000000001")
SECOND = ChatId("00000000-0000-0000-0000-000000000002")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
LEASE_S = 15.0
WAITED_UNTIL = datetime(2026, 1, 1, tzinfo=UTC)
PLENTY = SweepLimits(10, 10)


@pytest.fixture
async def workers(pool: Pool, chat_database: str) -> AsyncIterator[PostgresWorkers]:
    """Two live workers, and two chats that a dead one left behind."""
    store = PostgresWorkers(pool, Session(chat_database, "test lease"), RETRIES, renewal_max_s=0.2)
    for worker_id in (ONE, TWO):
        await store.register(worker_id, "unix:/nowhere", LEASE_S)
    for age_s, chat_id in ((20.0, FIRST), (10.0, SECOND)):
        state = ChatState(
            chat_id, Status.RUNNING, 1, 1, 1, MessageId(2), owner_epoch=1, worker_id=DEAD
        )
        await insert_chat(pool, state, ANN, age_s=age_s)
    try:
        yield store
    finally:
        store.close()


async def test_racing_workers_claim_different_chats(pool: Pool, workers: PostgresWorkers) -> None:
    async with asyncio.timeout(10), pool.acquire() as one, pool.acquire() as two:
        async with one.transaction(), two.transaction():
            by_one = await one.fetch(SWEEP, ONE, 1, 10, False, True)
            by_two = await two.fetch(SWEEP, TWO, 1, 10, False, True)
        taken = {str(row["chat_id"]): str(row["worker_id"]) for row in (*by_one, *by_two)}
    assert taken == {FIRST: ONE, SECOND: TWO}
    assert [(state.chat_id, state.owner_epoch) for state in await workers.owned(ONE)] == [
        (FIRST, 2)
    ]
    assert [(state.chat_id, state.owner_epoch) for state in await workers.owned(TWO)] == [
        (SECOND, 2)
    ]


async def test_a_claim_keeps_the_decision_for_a_fallback_model_and_no_other_wait(
    pool: Pool, workers: PostgresWorkers
) -> None:
    waiting = Retry(1, 1000, WAITED_UNTIL, TurnError("busy", ErrorKind.OVERLOADED))
    decided = replace(waiting, fallback=Fallback("a", "b", "overloaded", "busy"))
    for chat_id, retry in ((FIRST, waiting), (SECOND, decided)):
        await pool.execute(
            "UPDATE chat.chat_exec SET retry = $2::text::json WHERE chat_id = $1",
            chat_id,
            retry_to_json(retry),
        )
    taken = await workers.sweep(ONE, PLENTY)
    assert {each.state.chat_id: each.state.retry for each in taken} == {
        FIRST: None,
        SECOND: decided,
    }


async def test_a_sweep_passes_by_what_another_is_taking(
    pool: Pool, workers: PostgresWorkers
) -> None:
    async with asyncio.timeout(10), pool.acquire() as one, one.transaction():
        assert len(await one.fetch(SWEEP, ONE, 10, 10, False, True)) == 2
        assert await workers.sweep(TWO, PLENTY) == ()
    assert await workers.sweep(TWO, PLENTY) == ()


async def test_a_chat_that_moves_while_it_is_swept_is_left_alone(
    pool: Pool, workers: PostgresWorkers
) -> None:
    blocked_sweep = SWEEP.replace("SKIP LOCKED", "")
    async with (
        asyncio.timeout(10),
        pool.acquire() as user,
        pool.acquire() as one,
        asyncio.TaskGroup() as group,
    ):
        transaction = user.transaction()
        await transaction.start()
        await user.execute(
            "UPDATE chat.chat_exec SET snapshot_version = snapshot_version + 1, "
            "status = 'waiting', worker_id = NULL WHERE chat_id = $1",
            FIRST,
        )
        sweeping = group.create_task(one.fetch(blocked_sweep, ONE, 10, 10, False, True))
        await until_blocked(pool, one.get_server_pid())
        await transaction.commit()
    assert [str(row["chat_id"]) for row in sweeping.result()] == [SECOND]
    moved = await workers.states((FIRST,))
    assert [(state.status, state.worker_id) for state in moved] == [(Status.WAITING, None)]


async def test_only_one_of_two_workers_parks_a_chat(pool: Pool, workers: PostgresWorkers) -> None:
    await pool.execute("UPDATE chat.chat_exec SET takeovers = 3 WHERE chat_id = $1", FIRST)
    async with asyncio.timeout(10), pool.acquire() as one, one.transaction():
        error = '{"message": "x", "kind": "crash_loop"}'
        assert len(await one.fetch(PARK, ONE, 10, error)) == 1
        assert await workers.park(TWO, 10) == ()
    assert await workers.park(TWO, 10) == ()


async def test_a_renewal_that_nobody_answers_ends_and_the_next_one_works(
    pool: Pool, workers: PostgresWorkers
) -> None:
    async with asyncio.timeout(10):
        assert await workers.renew(ONE, LEASE_S) == ()
        async with pool.acquire() as one, one.transaction():
            await one.execute("SELECT 1 FROM chat.workers WHERE id = $1 FOR UPDATE", ONE)
            with pytest.raises(DatabaseUnavailable):
                await workers.renew(ONE, LEASE_S)
        assert await workers.renew(ONE, LEASE_S) == ()


async def test_a_renewal_survives_the_loss_of_its_connection(
    pool: Pool, workers: PostgresWorkers
) -> None:
    async with asyncio.timeout(10):
        assert await workers.renew(ONE, LEASE_S) == ()
        ended = await pool.fetch(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'test lease' AND datname = current_database()"
        )
        assert len(ended) == 1
        try:
            renewed = await workers.renew(ONE, LEASE_S)
        except DatabaseUnavailable:
            renewed = await workers.renew(ONE, LEASE_S)
        assert renewed == ()


async def test_a_renewal_does_not_wait_for_the_pool(pool: Pool, workers: PostgresWorkers) -> None:
    async with asyncio.timeout(10), all_taken(pool):
        assert await workers.renew(ONE, LEASE_S) == ()


async def until_blocked(pool: Pool, pid: int) -> None:
    """Return once that backend waits for a lock."""
    while True:
        waits = await pool.fetchval("SELECT pg_blocking_pids($1)", pid)
        if waits:
            return
