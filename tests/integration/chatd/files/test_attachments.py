"""Files that a chat's tools hand over."""

import asyncio
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.errors import FenceLost
from chatd.chats.domain.views import FILES_MAX
from chatd.chats.store.attachments import INSERT_FILE, Attachments
from chatd.chats.store.creation import NewChat
from chatd.chats.store.creation import insert_chat as make_chat
from chatd.content.domain.errors import FileNotFound, TooManyFiles
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.files.store.files import PostgresFiles
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.errors import ChatNotFound
from chatd.primitives.domain.ids import ChatId, MessageId, Owner, OwnerClaim, OwnerId
from parley.postgres import Pool
from support.chatd.chats.chat_rows import insert_chat
from support.chatd.turns.turn_stage import ANN, CHAT, IDLE

REPORT = FileData("report.md", "text/markdown", b"# Report\n")
BEN = Owner(OwnerId("00000000-0000-0000-0000-00000000000b"), "member")
OTHER = ChatId("00000000-0000-0000-0000-000000000002")
CLAIM = OwnerClaim(CHAT, IDLE.owner_epoch, IDLE.turn_id)

WAITING_FOR_LOCK = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


def file_id(number: int) -> str:
    return f"00000000-0000-0000-0001-{number:012}"


async def test_a_file_is_kept_once_for_its_chat(pool: Pool) -> None:
    await insert_chat(pool, IDLE, ANN)
    attachments = Attachments(pool)
    for _ in range(2):
        await attachments.keep(CLAIM, ANN.id, file_id(1), REPORT)
    assert await PostgresFiles(pool).load([file_id(1)], ANN.id) == {file_id(1): REPORT}
    assert await PostgresFiles(pool).load([file_id(1)], BEN.id) == {}


async def test_a_full_chat_takes_no_other_file_and_keeps_those_it_has(
    pool: Pool,
) -> None:
    await insert_chat(pool, IDLE, ANN)
    attachments = Attachments(pool)
    for number in range(FILES_MAX):
        await attachments.keep(CLAIM, ANN.id, file_id(number), REPORT)
    with pytest.raises(TooManyFiles):
        await attachments.keep(CLAIM, ANN.id, file_id(FILES_MAX), REPORT)
    await attachments.keep(CLAIM, ANN.id, file_id(0), REPORT)


async def test_a_chat_of_somebody_else_takes_no_file(pool: Pool) -> None:
    await insert_chat(pool, replace(IDLE, chat_id=OTHER), BEN)
    with pytest.raises(ChatNotFound):
        await Attachments(pool).keep(replace(CLAIM, chat_id=OTHER), ANN.id, file_id(1), REPORT)
    assert await PostgresFiles(pool).load([file_id(1)], ANN.id) == {}


@pytest.mark.parametrize(
    "ended",
    [
        replace(CLAIM, owner_epoch=CLAIM.owner_epoch - 1),
        replace(CLAIM, turn_id=MessageId(CLAIM.turn_id + 1)),
    ],
    ids=["owner replaced", "turn over"],
)
async def test_a_file_of_an_owner_that_was_replaced_or_a_turn_that_is_over_is_not_kept(
    pool: Pool, ended: OwnerClaim
) -> None:
    await insert_chat(pool, IDLE, ANN)
    with pytest.raises(FenceLost):
        await Attachments(pool).keep(ended, ANN.id, file_id(1), REPORT)
    assert await PostgresFiles(pool).load([file_id(1)], ANN.id) == {}


async def test_a_file_that_is_removed_while_its_chat_is_made_is_told(pool: Pool) -> None:
    await pool.execute(INSERT_FILE, file_id(1), ANN.id, "a", "text/plain", bytes(32), b"a")
    hello = NewMessage(Role.USER, (Text("hello"),), ANN.id)
    new = NewChat(CHAT, ANN, "x", True, (hello,), file_ids=(file_id(1),))

    async def make() -> None:
        with pytest.raises(FileNotFound):
            await make_chat(pool, new, claimed_by=None, client_key=None)

    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks, pool.acquire() as removing:
        removal = removing.transaction()
        await removal.start()
        await removing.execute("DELETE FROM chat.files")
        tasks.create_task(make())
        while not await pool.fetchval(WAITING_FOR_LOCK):
            await pool.execute("SELECT pg_sleep(0.005)")
        await removal.commit()
    assert await pool.fetchval("SELECT count(*) FROM chat.chats") == 0
