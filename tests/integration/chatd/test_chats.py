import asyncio

import asyncpg
import pytest

from chatd.domain.chat import (
    ChatId,
    ChatState,
    ErrorKind,
    ExecutionId,
    MessageId,
    NewMessage,
    OwnerId,
    Role,
    Status,
    TurnError,
    WorkerId,
)
from chatd.domain.commands import CommitStep, FailTurn, FinishTurn, SendMessage
from chatd.domain.errors import ChatNotFound, FenceLost, InvalidRequest, TransitionNotAllowed
from chatd.domain.parts import Reasoning, Text, ToolCall, ToolOutcome, ToolResult
from chatd.domain.tools import Dispatch, Executor
from chatd.domain.transitions import fence_of
from chatd.store.chats import PostgresChats

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = OwnerId("00000000-0000-0000-0000-00000000000a")
BOB = OwnerId("00000000-0000-0000-0000-00000000000b")
WORKER = WorkerId("00000000-0000-0000-0000-0000000000aa")
HELLO = NewMessage(Role.USER, (Text("hello"),), ANN)
ANSWER = NewMessage(Role.ASSISTANT, (Reasoning("hm"), Text("hi")))


@pytest.fixture
def moved() -> list[ChatState]:
    return []


@pytest.fixture
async def chats(pool: "asyncpg.Pool[asyncpg.Record]", moved: list[ChatState]) -> PostgresChats:
    store = PostgresChats(pool, moved.append)
    await store.create(CHAT, owner_id=ANN, title="Hello", message=HELLO, claimed_by=WORKER)
    return store


async def test_a_created_chat_runs_and_is_owned(
    chats: PostgresChats, moved: list[ChatState]
) -> None:
    created = ChatState(CHAT, Status.RUNNING, 1, 1, 1, MessageId(2), 1, WORKER)
    assert await chats.state(CHAT) == created
    assert moved == [created]
    chat = await chats.get(CHAT, reader_id=ANN)
    assert (chat.state, chat.owner_id, chat.title) == (created, ANN, "Hello")


async def test_creating_it_again_changes_nothing(
    chats: PostgresChats, moved: list[ChatState]
) -> None:
    again = NewMessage(Role.USER, (Text("other"),), ANN)
    is_new = await chats.create(CHAT, owner_id=ANN, title="x", message=again, claimed_by=WORKER)
    assert not is_new
    assert len(moved) == 1
    assert [message.content for message in await chats.history(CHAT)] == [HELLO.content]


async def test_somebody_elses_chat_looks_like_none(chats: PostgresChats) -> None:
    with pytest.raises(ChatNotFound):
        await chats.get(CHAT, reader_id=BOB)


async def test_a_turn_with_tools_is_stored_in_order(
    chats: PostgresChats, pool: "asyncpg.Pool[asyncpg.Record]"
) -> None:
    state = await chats.state(CHAT)
    call = ToolCall("call_0", "execute", '{"command":"true"}')
    dispatch = Dispatch(ExecutionId(CHAT), call, Executor.TOOLRUNNER, "journal-1")
    asked = NewMessage(Role.ASSISTANT, (Text("let me see"), call))
    state = await chats.apply(CHAT, CommitStep(fence_of(state), (asked,), (dispatch,)))
    result = ToolResult("call_0", "execute", '{"exit_code":0}', ToolOutcome.DONE)
    told = NewMessage(Role.TOOL, (result,))
    state = await chats.apply(CHAT, CommitStep(fence_of(state), (told,)))
    state = await chats.apply(CHAT, FinishTurn(fence_of(state), (ANSWER,)))

    history = await chats.history(CHAT)
    assert [(message.id, message.revision, message.role) for message in history] == [
        (1, 1, Role.USER),
        (2, 2, Role.ASSISTANT),
        (3, 3, Role.TOOL),
        (4, 4, Role.ASSISTANT),
    ]
    assert [message.content for message in history] == [
        HELLO.content,
        asked.content,
        told.content,
        ANSWER.content,
    ]
    assert state == await chats.state(CHAT)
    assert state == ChatState(CHAT, Status.WAITING, 4, 4, 0, MessageId(5), 1)
    stored = await pool.fetchrow("SELECT message_id, owner_epoch, executor FROM chat.tool_calls")
    assert stored is not None
    assert tuple(stored) == (2, 1, "toolrunner")


async def test_a_failed_turn_keeps_its_error_until_the_next_message(chats: PostgresChats) -> None:
    error = TurnError("It broke.", ErrorKind.GENERIC, is_retryable=True)
    failed = await chats.apply(CHAT, FailTurn(fence_of(await chats.state(CHAT)), error))
    assert (await chats.get(CHAT, reader_id=ANN)).state == failed
    assert failed.last_error == error
    started = await chats.apply(CHAT, SendMessage(HELLO, WORKER))
    assert (started.status, started.last_error) == (Status.RUNNING, None)


async def test_a_busy_chat_refuses_a_second_message(chats: PostgresChats) -> None:
    with pytest.raises(TransitionNotAllowed):
        await chats.apply(CHAT, SendMessage(HELLO, WORKER))


async def test_of_two_racing_finishes_one_writes_and_the_other_learns_that_it_lost(
    chats: PostgresChats, pool: "asyncpg.Pool[asyncpg.Record]"
) -> None:
    command = FinishTurn(fence_of(await chats.state(CHAT)), (ANSWER,))
    async with pool.acquire() as connection, connection.transaction():
        # Both have read the state and wait for this row when they write.
        await connection.execute("SELECT 1 FROM chat.chat_exec FOR UPDATE")
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            racing = [group.create_task(attempt(chats, command)) for _ in range(2)]
            await until_blocked(pool, 2)
            await connection.execute("COMMIT")
    assert sorted(task.result() for task in racing) == ["lost", "won"]
    assert len(await chats.history(CHAT)) == 2


async def attempt(chats: PostgresChats, command: FinishTurn) -> str:
    try:
        await chats.apply(CHAT, command)
    except FenceLost:
        return "lost"
    return "won"


async def until_blocked(pool: "asyncpg.Pool[asyncpg.Record]", sessions: int) -> None:
    """Wait until that many sessions wait for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    while await pool.fetchval(waiting) < sessions:
        await pool.execute("SELECT pg_sleep(0.01)")


async def test_pages_go_back_from_the_newest_and_say_whether_there_is_more(
    chats: PostgresChats,
) -> None:
    for _ in range(2):
        await chats.apply(CHAT, FinishTurn(fence_of(await chats.state(CHAT)), (ANSWER,)))
        await chats.apply(CHAT, SendMessage(HELLO, WORKER))

    async def ids(before_id: int, after_id: int, limit: int) -> tuple[list[int], bool]:
        page = await chats.page(CHAT, before_id=before_id, after_id=after_id, limit=limit)
        return [message.id for message in page.messages], page.has_more

    assert await ids(0, 0, 2) == ([5, 4], True)
    assert await ids(4, 0, 2) == ([3, 2], True)
    assert await ids(2, 0, 2) == ([1], False)
    assert await ids(0, 2, 2) == ([3, 4], True)
    assert await ids(0, 0, 0) == ([5, 4, 3, 2, 1], False)
    with pytest.raises(InvalidRequest):
        await ids(2, 2, 1)
    with pytest.raises(InvalidRequest):
        await ids(0, 0, 201)
