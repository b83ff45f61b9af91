"""Pieces of answers are kept in order, and only for chats that are there."""

import asyncio

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.pieces import Chunk, Piece
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.creation import NewChat
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.streams.store.partials import PostgresPartials
from parley.clock import FakeClock
from parley.postgres import Pool

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
GONE = ChatId("00000000-0000-0000-0000-000000000002")
ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")
HELLO = NewMessage(Role.USER, (Text("hello"),), ANN.id)

WAITING_FOR_LOCK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def chunk(chat_id: ChatId, attempt: int, first_seq: int, *texts: str) -> Chunk:
    pieces = tuple(Piece(Role.ASSISTANT, 0, Text(text)) for text in texts)
    return Chunk(chat_id, 1, attempt, first_seq, pieces)


async def create(pool: Pool, *chat_ids: ChatId) -> None:
    async with PostgresChats(pool, lambda state: None, FakeClock()) as chats:
        for chat_id in chat_ids:
            await chats.add(NewChat(chat_id, ANN, "x", True, (HELLO,)), claimed_by=None)


async def test_chunks_come_back_in_order_and_only_those_of_the_episode(
    pool: Pool,
) -> None:
    partials = PostgresPartials(pool)
    await create(pool, CHAT)
    await partials.add((chunk(CHAT, 0, 3, "lo\x00"), chunk(CHAT, 0, 1, "h", "el")))
    await partials.add((chunk(CHAT, 1, 1, "other"), chunk(GONE, 1, 1, "nobody")))
    loaded = await partials.load(CHAT, 1, 0)
    assert [piece.part for piece in loaded] == [Text("h"), Text("el"), Text("lo\x00")]
    assert await partials.load(CHAT, 1, 2) == ()


async def test_a_chat_that_is_being_deleted_costs_the_others_nothing(pool: Pool) -> None:
    partials = PostgresPartials(pool)
    await create(pool, CHAT, GONE)
    # The deletion is under way when the chunks are written, and commits only afterwards.
    async with asyncio.timeout(5), pool.acquire() as other:
        deletion = other.transaction()
        await deletion.start()
        await other.execute("DELETE FROM chat.chats WHERE id = $1", GONE)
        await partials.add((chunk(GONE, 0, 1, "nobody"), chunk(CHAT, 0, 1, "kept")))
        await deletion.commit()
    assert [piece.part for piece in await partials.load(CHAT, 1, 0)] == [Text("kept")]


async def test_a_deletion_that_commits_before_the_chunks_are_checked_is_no_error(
    pool: Pool,
) -> None:
    partials = PostgresPartials(pool)
    await create(pool, CHAT, GONE)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks, pool.acquire() as other:
        deletion = other.transaction()
        await deletion.start()
        await other.execute("DELETE FROM chat.chats WHERE id = $1", GONE)
        adding = tasks.create_task(
            partials.add((chunk(GONE, 0, 1, "nobody"), chunk(CHAT, 0, 1, "kept")))
        )
        while not adding.done() and not await pool.fetchval(WAITING_FOR_LOCK):
            pass
        await deletion.commit()
        await adding
    assert [piece.part for piece in await partials.load(CHAT, 1, 0)] == [Text("kept")]
