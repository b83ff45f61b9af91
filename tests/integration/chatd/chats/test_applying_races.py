"""Interleavings that a simulation found once, forced upon the real database.

A lock on a whole table stops a command between two of its statements; whoever holds the lock does
meanwhile what another process would have done.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from chatd.chats.domain.chat import ChatState, NewMessage, Status
from chatd.chats.domain.commands import (
    Command,
    DeleteQueuedMessage,
    FinishTurn,
    PromoteQueuedMessage,
    SendMessage,
)
from chatd.chats.domain.errors import QueuedMessageNotFound
from chatd.chats.domain.transitions import decide, fence_of
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.chats.store.reading import Bounds, Reading
from chatd.chats.store.rows import state_of
from chatd.chats.store.statements import SELECT_STATE, decision_statement
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId, QueuedMessageId, WorkerId
from chatd.primitives.domain.requests import ClientKey, Reader
from parley.clock import FakeClock
from parley.postgres import Connection, Pool

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
MINE = QueuedMessageId("00000000-0000-0000-0000-0000000000b1")
THEIRS = QueuedMessageId("00000000-0000-0000-0000-0000000000b2")
ANSWER = NewMessage(Role.ASSISTANT, (Text("hi"),))
MY_KEY = ClientKey("mine", b"")
THEIR_KEY = ClientKey("theirs", b"")


def said(text: str) -> NewMessage:
    return NewMessage(Role.USER, (Text(text),), ANN.id)


@pytest.fixture
async def chats(pool: Pool) -> AsyncIterator[PostgresChats]:
    """A chat that runs, as the process knows it that runs it."""
    await pool.execute(
        "INSERT INTO chat.workers"
        " VALUES ($1, 'unix:/nowhere', false, now() + interval '1 day', now())",
        WORKER,
    )
    async with PostgresChats(pool, lambda state: None, FakeClock()) as store:
        await store.add(NewChat(CHAT, ANN, "Hello", True, (said("hello"),)), claimed_by=WORKER)
        yield store


@pytest.fixture
async def at_rest(chats: PostgresChats) -> PostgresChats:
    """The same chat after its turn."""
    await chats.apply(CHAT, FinishTurn(fence_of(await chats.state(CHAT)), (ANSWER,)))
    return chats


@pytest.fixture
async def elsewhere(pool: Pool) -> AsyncIterator[PostgresChats]:
    """The same chats as a process sees them that never heard of them."""
    async with PostgresChats(pool, lambda state: None, FakeClock()) as store:
        yield store


class Holder:
    """Somebody who locked a table and may write while all others wait for it."""

    def __init__(
        self,
        pool: Pool,
        connection: Connection,
    ) -> None:
        self._pool = pool
        self._connection = connection

    async def write(self, command: Command, key: ClientKey) -> ChatState:
        """Execute a command as another process does."""
        row = await self._connection.fetchrow(SELECT_STATE, CHAT)
        assert row is not None
        seen = state_of(row)
        decision = decide(seen, command)
        statement = decision_statement(seen, decision, key)
        assert await self._connection.fetchrow(statement.text, *statement.arguments) is not None
        return decision.state

    async def until_one_waits(self, but: int = 0) -> int:
        """Return the process id of the session that waits, another one than `but`."""
        waiting = """
            SELECT pid FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event_type = 'Lock' AND pid <> $1
        """
        while (pid := await self._pool.fetchval(waiting, but)) is None:
            await self._pool.execute("SELECT pg_sleep(0.005)")
        return int(pid)

    async def cut_off(self, pid: int) -> None:
        """End a session and what it was executing; its process reads again, and waits again."""
        assert await self._pool.fetchval("SELECT pg_terminate_backend($1, 5000)", pid)
        await self.until_one_waits(but=pid)


@asynccontextmanager
async def held(pool: Pool, table: str) -> AsyncIterator[Holder]:
    """Keep everybody from a table; leaving commits."""
    async with asyncio.timeout(10), pool.acquire() as connection, connection.transaction():
        await connection.execute(f"LOCK TABLE chat.{table} IN ACCESS EXCLUSIVE MODE")
        yield Holder(pool, connection)


@pytest.mark.parametrize(
    "command", [DeleteQueuedMessage(THEIRS), PromoteQueuedMessage(THEIRS, WORKER)]
)
async def test_what_was_queued_after_the_state_was_read_is_not_found_in_it(
    pool: Pool,
    at_rest: PostgresChats,
    elsewhere: PostgresChats,
    command: DeleteQueuedMessage | PromoteQueuedMessage,
) -> None:
    async with asyncio.TaskGroup() as group, held(pool, "chat_queue") as holder:
        asking = group.create_task(refusal_of(elsewhere, command))
        await holder.until_one_waits()
        await holder.write(SendMessage(said("a turn"), MINE, None), MY_KEY)
        await holder.write(SendMessage(said("waits"), THEIRS, None), THEIR_KEY)
    assert isinstance(asking.result(), QueuedMessageNotFound)
    assert [queued.id for queued in await at_rest.queue(CHAT)] == [THEIRS]
    await elsewhere.apply(CHAT, DeleteQueuedMessage(THEIRS))
    assert await at_rest.queue(CHAT) == ()


async def test_what_leaves_the_queue_while_a_page_is_read_is_in_the_page(
    pool: Pool, chats: PostgresChats
) -> None:
    await chats.apply(CHAT, SendMessage(said("waits"), MINE, None))
    async with asyncio.TaskGroup() as group, held(pool, "chat_queue") as holder:
        reading = group.create_task(
            Reading(pool).page(CHAT, Reader(ANN.id), Bounds(before_id=0, after_id=0, limit=50))
        )
        await holder.until_one_waits()
        fence = fence_of(await chats.state(CHAT))
        await holder.write(FinishTurn(fence, (ANSWER,)), MY_KEY)
    page = reading.result()
    assert [message.content for message in page.messages] == [
        (Text("waits"),),
        (Text("hi"),),
        (Text("hello"),),
    ]
    assert page.queue == ()


async def refusal_of(chats: PostgresChats, command: Command) -> Exception | None:
    try:
        await chats.apply(CHAT, command)
    except Exception as error:
        return error
    return None


async def test_the_same_state_made_by_another_request_does_not_pass_for_ones_own_commit(
    pool: Pool, chats: PostgresChats
) -> None:
    async with asyncio.TaskGroup() as group, held(pool, "chat_exec") as holder:
        sending = group.create_task(
            chats.apply(CHAT, SendMessage(said("mine"), MINE, None), MY_KEY)
        )
        await holder.cut_off(await holder.until_one_waits())
        theirs = await holder.write(SendMessage(said("theirs"), THEIRS, None), THEIR_KEY)
    assert sending.result().queue_length == theirs.queue_length + 1
    assert [queued.id for queued in await chats.queue(CHAT)] == [THEIRS, MINE]
    assert await keys(pool) == {"mine", "theirs"}


async def test_a_message_that_an_outage_cut_off_is_claimed_when_it_is_sent_again(
    pool: Pool, at_rest: PostgresChats
) -> None:
    before = await at_rest.state(CHAT)
    async with asyncio.TaskGroup() as group, held(pool, "chat_exec") as holder:
        sending = group.create_task(
            at_rest.apply(CHAT, SendMessage(said("again"), MINE, WORKER), MY_KEY)
        )
        await holder.cut_off(await holder.until_one_waits())
    sent = sending.result()
    assert sent.snapshot_version == before.snapshot_version + 1
    assert (sent.status, sent.worker_id) == (Status.RUNNING, WORKER)
    assert (await at_rest.state(CHAT)).worker_id == WORKER


async def test_a_claim_that_an_outage_cut_off_is_not_made_by_a_worker_that_drains(
    pool: Pool, at_rest: PostgresChats
) -> None:
    async with asyncio.TaskGroup() as group, held(pool, "chat_exec") as holder:
        sending = group.create_task(
            at_rest.apply(CHAT, SendMessage(said("again"), MINE, WORKER), MY_KEY)
        )
        await holder.cut_off(await holder.until_one_waits())
        await pool.execute("UPDATE chat.workers SET is_draining = true")
    assert (sending.result().status, sending.result().worker_id) == (Status.RUNNING, None)


async def keys(pool: Pool) -> set[str]:
    rows = await pool.fetch("SELECT key FROM chat.client_keys WHERE key <> ''")
    return {row["key"] for row in rows}
