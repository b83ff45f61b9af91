"""The races that executing a command must survive, each forced to happen."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from chatd.chats.domain.chat import ChatState, NewMessage, Status
from chatd.chats.domain.commands import CommitStep, FinishTurn, Interrupt, SendMessage, SetArchived
from chatd.chats.domain.errors import FenceLost, TransitionNotAllowed
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text, ToolCall, ToolOutcome, ToolResult
from chatd.content.domain.tools import Dispatch, Executor
from chatd.primitives.domain.ids import (
    ChatId,
    ExecutionId,
    MessageId,
    Owner,
    OwnerId,
    QueuedMessageId,
    WorkerId,
)
from parley.clock import FakeClock
from parley.postgres import Database, DatabaseBusy, Pool, PoolExhausted
from support.chatd.turns.worker_stage import settle
from support.database.taken_pool import all_taken

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
HELLO = NewMessage(Role.USER, (Text("hello"),), ANN.id)
ANSWER = NewMessage(Role.ASSISTANT, (Text("hi"),))
QUEUED = QueuedMessageId("00000000-0000-0000-0000-0000000000bb")
OTHER_QUEUED = QueuedMessageId("00000000-0000-0000-0000-0000000000bc")


@pytest.fixture
async def pool(chat_database: str) -> AsyncIterator[Pool]:
    async with Database.open(chat_database, application_name="test", connections_max=8) as database:
        await database.pool.execute(
            "INSERT INTO chat.workers"
            " VALUES ($1, 'unix:/nowhere', false, now() + interval '1 day', now())",
            WORKER,
        )
        yield database.pool


@pytest.fixture
async def chats(pool: Pool) -> AsyncIterator[PostgresChats]:
    async with PostgresChats(pool, lambda state: None, FakeClock()) as store:
        await store.add(NewChat(CHAT, ANN, "Hello", True, (HELLO,)), claimed_by=WORKER)
        yield store


@pytest.fixture
async def elsewhere(pool: Pool) -> AsyncIterator[PostgresChats]:
    """The same chats as another process sees them."""
    async with PostgresChats(pool, lambda state: None, FakeClock()) as store:
        yield store


async def until_waiting(pool: Pool, sessions: int) -> None:
    """Wait until that many sessions wait for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    async with asyncio.timeout(5):
        while await pool.fetchval(waiting) < sessions:
            await pool.execute("SELECT pg_sleep(0.005)")


async def test_a_caller_that_goes_away_does_not_take_its_commit_along(
    chats: PostgresChats, pool: Pool
) -> None:
    finish = FinishTurn(fence_of(await chats.state(CHAT)), (ANSWER,))
    async with (
        asyncio.timeout(5),
        asyncio.TaskGroup() as group,
        pool.acquire() as holder,
        holder.transaction(),
    ):
        await holder.execute("SELECT 1 FROM chat.chat_exec FOR UPDATE")
        caller = group.create_task(chats.apply(CHAT, finish))
        await until_waiting(pool, 1)
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
    async with asyncio.timeout(5):
        while (await chats.state(CHAT)).status is not Status.WAITING:
            await pool.execute("SELECT pg_sleep(0.005)")
    assert len(await chats.history(CHAT)) == 2


async def test_what_another_process_did_is_noticed_and_the_command_decided_anew(
    chats: PostgresChats, elsewhere: PostgresChats
) -> None:
    known = await chats.state(CHAT)
    await elsewhere.apply(CHAT, SendMessage(HELLO, QUEUED, None))
    finished = await chats.apply(CHAT, FinishTurn(fence_of(known), (ANSWER,)))
    assert (finished.status, finished.queue_length) == (Status.RUNNING, 0)
    assert [m.role for m in await chats.history(CHAT)] == ["user", "assistant", "user"]


async def test_a_refusal_comes_from_a_fresh_state_only(
    chats: PostgresChats, elsewhere: PostgresChats
) -> None:
    known = await chats.state(CHAT)
    with pytest.raises(TransitionNotAllowed):
        await chats.apply(CHAT, SetArchived(archived=True))
    await elsewhere.apply(CHAT, FinishTurn(fence_of(known), (ANSWER,)))
    archived = await chats.apply(CHAT, SetArchived(archived=True))
    assert archived.archived


async def test_an_interrupt_that_meets_a_finish_loses_nothing(
    chats: PostgresChats, elsewhere: PostgresChats, pool: Pool
) -> None:
    known = await chats.state(CHAT)
    async with (
        asyncio.timeout(5),
        asyncio.TaskGroup() as group,
        pool.acquire() as holder,
        holder.transaction(),
    ):
        await holder.execute("SELECT 1 FROM chat.chat_exec FOR UPDATE")
        interrupt = group.create_task(elsewhere.apply(CHAT, Interrupt(MessageId(0), None)))
        await until_waiting(pool, 1)
        finish = group.create_task(attempt(chats, FinishTurn(fence_of(known), (ANSWER,))))
        await until_waiting(pool, 2)
    after = await elsewhere.state(CHAT)
    assert interrupt.result().status is Status.INTERRUPTING
    assert isinstance(finish.result(), TransitionNotAllowed)
    assert after.status is Status.INTERRUPTING


async def attempt(chats: PostgresChats, command: FinishTurn) -> ChatState | Exception:
    try:
        return await chats.apply(CHAT, command)
    except (FenceLost, TransitionNotAllowed) as error:
        return error


async def test_a_draining_worker_cannot_claim_and_the_message_is_taken_all_the_same(
    chats: PostgresChats, pool: Pool
) -> None:
    await chats.apply(CHAT, FinishTurn(fence_of(await chats.state(CHAT)), (ANSWER,)))
    await pool.execute("UPDATE chat.workers SET is_draining = true")
    sent = await chats.apply(CHAT, SendMessage(HELLO, QUEUED, WORKER))
    assert (sent.status, sent.worker_id, sent.generation_attempt) == (Status.RUNNING, None, 0)


async def test_many_writers_of_one_chat_all_get_through(
    chats: PostgresChats, elsewhere: PostgresChats
) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        for number in range(20):
            queued = QueuedMessageId(f"00000000-0000-0000-0000-{number:012x}")
            store = chats if number % 2 else elsewhere
            group.create_task(store.apply(CHAT, SendMessage(HELLO, queued, None)))
    assert (await chats.state(CHAT)).queue_length == 20
    assert len(await chats.queue(CHAT)) == 20


async def test_a_plain_turn_takes_two_statements_to_write(chats: PostgresChats, pool: Pool) -> None:
    state = await chats.apply(CHAT, FinishTurn(fence_of(await chats.state(CHAT)), (ANSWER,)))
    before = await counted(pool)
    state = await chats.apply(CHAT, SendMessage(HELLO, QUEUED, WORKER))
    await chats.apply(CHAT, FinishTurn(fence_of(state), (ANSWER,)))
    assert await counted(pool) - before == 2


async def counted(pool: Pool) -> int:
    """Return the version of the chat; every commit that writes one moves it by one."""
    version: int = await pool.fetchval("SELECT snapshot_version FROM chat.chat_exec")
    return version


async def test_with_every_connection_taken_a_user_is_refused_and_a_worker_waits(
    chat_database: str, pool: Pool, chats: PostgresChats
) -> None:
    finish = FinishTurn(fence_of(await chats.state(CHAT)), (ANSWER,))
    async with (
        Database.open(
            chat_database, application_name="test", connections_max=4, pool_patience_s=0.05
        ) as crowded,
        PostgresChats(crowded.pool, lambda state: None, FakeClock()) as there,
        asyncio.timeout(10),
    ):
        await there.state(CHAT)
        async with asyncio.TaskGroup() as tasks, all_taken(crowded.pool):
            finishing = tasks.create_task(there.apply(CHAT, finish))
            with pytest.raises(PoolExhausted):
                await there.state(CHAT)
            with pytest.raises(PoolExhausted):
                await crowded.pool.fetchval("SELECT 1")
        assert finishing.result().status is Status.WAITING
        async with all_taken(crowded.pool):
            with pytest.raises(PoolExhausted):
                await there.apply(CHAT, SendMessage(HELLO, QUEUED, claimed_by=WORKER))
    assert (await chats.state(CHAT)).status is Status.WAITING


async def test_who_stood_in_line_behind_a_locked_chat_is_refused_in_their_turn(
    pool: Pool, chats: PostgresChats
) -> None:
    clock = FakeClock()
    async with (
        asyncio.timeout(10),
        PostgresChats(pool, lambda state: None, clock) as there,
        pool.acquire() as connection,
        asyncio.TaskGroup() as tasks,
    ):
        await there.state(CHAT)
        async with connection.transaction():
            await connection.execute("SELECT 1 FROM chat.chat_exec FOR UPDATE")
            first = tasks.create_task(there.apply(CHAT, SendMessage(HELLO, QUEUED, None)))
            await until_waiting(pool, 1)
            second = tasks.create_task(refusal(there))
            await settle()
            clock.advance(6)
        assert (await first).queue_length == 1
        assert isinstance(await second, DatabaseBusy)


async def refusal(chats: PostgresChats) -> Exception | None:
    """Send a message and return why it was refused."""
    try:
        await chats.apply(CHAT, SendMessage(HELLO, OTHER_QUEUED, None))
    except DatabaseBusy as error:
        return error
    return None


async def test_dispatched_calls_belong_to_their_message_whatever_is_appended_with_it(
    chats: PostgresChats,
) -> None:
    state = await chats.state(CHAT)
    call = ToolCall("call_0", "execute", "{}")
    refused = ToolResult("call_1", "nonsense", "{}", ToolOutcome.FAILED)
    asked = NewMessage(Role.ASSISTANT, (call, ToolCall("call_1", "nonsense", "{}")))
    dispatch = Dispatch(ExecutionId(CHAT), call, Executor.TOOLRUNNER, "journal-1")
    messages = (asked, NewMessage(Role.TOOL, (refused,)))
    await chats.apply(CHAT, CommitStep(fence_of(state), messages, (dispatch,)))
    (stored,) = await chats.executions(CHAT, state.next_message_id)
    assert (stored.execution_id, stored.tool_call_id) == (dispatch.execution_id, "call_0")
