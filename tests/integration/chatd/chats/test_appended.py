"""Which commands let a kept history go on without a read, and which do not."""

from collections.abc import AsyncIterator
from datetime import datetime

import pytest

from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.domain.commands import EditMessage, FinishTurn, Release, SendMessage
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerId, QueuedMessageId
from parley.clock import FakeClock
from parley.postgres import Database, Pool
from support.chatd.chats.served_chats import INSERT_WORKER, WORKER

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
HELLO = NewMessage(Role.USER, (Text("hello"),), ANN.id)
ANSWER = NewMessage(Role.ASSISTANT, (Text("hi"),))
QUEUED = QueuedMessageId("00000000-0000-0000-0000-0000000000bb")

Told = list[tuple[ChatState, ChatState, tuple[NewMessage, ...]]]


@pytest.fixture
async def pool(chat_database: str) -> AsyncIterator[Pool]:
    async with Database.open(chat_database, application_name="test", connections_max=8) as database:
        await database.pool.execute(INSERT_WORKER, WORKER)
        yield database.pool


@pytest.fixture
def told() -> Told:
    return []


@pytest.fixture
async def chats(pool: Pool, told: Told) -> AsyncIterator[PostgresChats]:
    """One chat that waits, whose first turn is not told any more."""

    def appended(
        before: ChatState,
        after: ChatState,
        messages: tuple[NewMessage, ...],
        at: datetime | None,
    ) -> None:
        assert at is not None
        told.append((before, after, messages))

    async with PostgresChats(pool, lambda _: None, FakeClock(), appended=appended) as store:
        await store.add(NewChat(CHAT, ANN, "Hello", True, (HELLO,)), claimed_by=WORKER)
        await store.apply(CHAT, FinishTurn(fence_of(await store.state(CHAT)), (ANSWER,)))
        told.clear()
        yield store


async def test_a_message_that_starts_a_turn_is_told_with_the_states_around_it(
    chats: PostgresChats, told: Told
) -> None:
    before = await chats.state(CHAT)
    after = await chats.apply(CHAT, SendMessage(HELLO, QUEUED, WORKER))
    assert told == [(before, after, (HELLO,))]


async def test_a_message_that_only_waits_is_not_told(chats: PostgresChats, told: Told) -> None:
    await chats.apply(CHAT, SendMessage(HELLO, QUEUED, WORKER))
    told.clear()
    await chats.apply(CHAT, SendMessage(HELLO, QUEUED, WORKER))
    assert told == []


async def test_an_edit_is_not_told_because_it_also_deletes(
    chats: PostgresChats, told: Told
) -> None:
    await chats.apply(CHAT, EditMessage(MessageId(1), HELLO, WORKER))
    assert told == []


async def test_commands_that_write_no_message_are_not_told(
    chats: PostgresChats, told: Told
) -> None:
    running = await chats.apply(CHAT, SendMessage(HELLO, QUEUED, WORKER))
    told.clear()
    await chats.apply(CHAT, Release(fence_of(running)))
    assert told == []
