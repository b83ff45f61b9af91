"""A whole worker over PostgreSQL: it registers, sweeps, runs, fails and hands over."""

import asyncio
import random  # noqa: TID251 (a test chooses its chance)
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import ChatState, Claimed, Status
from chatd.chats.store.chats import PostgresChats
from chatd.content.domain.messages import ErrorKind
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, WorkerId
from chatd.turns.engine.mailbox import Mailbox
from chatd.turns.store.workers import PostgresWorkers
from chatd.turns.worker.ports import WorkerLimits, WorkerPorts
from chatd.turns.worker.worker import Worker
from parley.clock import FakeClock
from parley.postgres import Pool, Session
from support.chatd.chats.chat_rows import insert_chat
from support.database.conflicts import RETRIES
from support.host.supervised import supervision

ME = WorkerId("00000000-0000-0000-0000-0000000000aa")
GOOD = ChatId("00000000-0000-0000-0000-000000000001")
BAD = ChatId("00000000-0000-0000-0000-000000000002")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")


@pytest.fixture
async def workers(pool: Pool, chat_database: str) -> AsyncIterator[PostgresWorkers]:
    store = PostgresWorkers(pool, Session(chat_database, "test lease"), RETRIES)
    try:
        yield store
    finally:
        store.close()


async def test_a_worker_takes_what_waits_ends_what_crashes_and_hands_over_the_rest(
    pool: Pool, workers: PostgresWorkers
) -> None:
    clock = FakeClock()
    state_changed: asyncio.Queue[ChatState] = asyncio.Queue()
    chats = PostgresChats(pool, state_changed.put_nowait, clock)
    fresh = ChatState(GOOD, Status.RUNNING, 1, 1, 0, MessageId(2), owner_epoch=1)
    await insert_chat(pool, fresh, ANN)
    await insert_chat(pool, replace(fresh, chat_id=BAD), ANN)

    async def run_chat(claimed: Claimed, mailbox: Mailbox) -> None:
        if claimed.state.chat_id == BAD:
            raise RuntimeError("a bug")
        await asyncio.Event().wait()

    worker = Worker(
        ME,
        address="unix:/me",
        ports=WorkerPorts(
            leases=workers,
            claims=workers,
            apply=chats.apply,
            run_chat=run_chat,
            state_changed=chats.publish_state,
            request_sweep=lambda: None,
            on_ended=lambda: None,
            request_quarantine=lambda: None,
            clock=clock,
            rng=random.Random(7),
            supervision=supervision(clock),
        ),
        limits=WorkerLimits(slots_max=5, running_per_user_max=5),
    )
    async with asyncio.timeout(20), chats, asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await worker.until_registered()
        while state_changed.qsize() < 3:  # Two claims, and the end of the one that crashes.
            await clock.until_sleeping(2)
            clock.advance(1)
            await pool.execute("SELECT 1")
        failed = await chats.state(BAD)
        assert failed.last_error is not None
        assert (failed.status, failed.last_error.kind) == (Status.ERROR, ErrorKind.GENERIC)
        running = await chats.state(GOOD)
        assert (running.worker_id, running.owner_epoch) == (ME, 2)
        assert running.generation_attempt == 1
        assert worker.mailbox(GOOD) is not None

        await worker.drain()

    assert (await chats.state(GOOD)).worker_id is None
    assert await workers.replicas() == ()
    assert await workers.place_in_line(GOOD) == 1
