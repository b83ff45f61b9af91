"""Files that a chat's tools hand over."""

from dataclasses import replace

import pytest

from chatd.domain.chat import ChatId, Owner, OwnerId
from chatd.domain.errors import ChatNotFound, TooManyFiles
from chatd.domain.model import FileData
from chatd.domain.views import FILES_MAX
from chatd.store.attachments import Attachments
from chatd.store.file_bytes import PostgresFiles
from parley.postgres import Pool
from support.chat_rows import insert_chat
from support.turn_stage import ANN, CHAT, IDLE

REPORT = FileData("report.md", "text/markdown", b"# Report\n")
BEN = Owner(OwnerId("00000000-0000-0000-0000-00000000000b"), "member")
OTHER = ChatId("00000000-0000-0000-0000-000000000002")


def file_id(number: int) -> str:
    return f"00000000-0000-0000-0001-{number:012}"


async def test_a_file_is_kept_once_for_its_chat(pool: Pool) -> None:
    await insert_chat(pool, IDLE, ANN)
    attachments = Attachments(pool)
    for _ in range(2):
        await attachments.keep(CHAT, ANN.id, file_id(1), REPORT)
    assert await PostgresFiles(pool).load([file_id(1)], ANN.id) == {file_id(1): REPORT}
    assert await PostgresFiles(pool).load([file_id(1)], BEN.id) == {}


async def test_a_full_chat_takes_no_other_file_and_keeps_those_it_has(
    pool: Pool,
) -> None:
    await insert_chat(pool, IDLE, ANN)
    attachments = Attachments(pool)
    for number in range(FILES_MAX):
        await attachments.keep(CHAT, ANN.id, file_id(number), REPORT)
    with pytest.raises(TooManyFiles):
        await attachments.keep(CHAT, ANN.id, file_id(FILES_MAX), REPORT)
    await attachments.keep(CHAT, ANN.id, file_id(0), REPORT)


async def test_a_chat_of_somebody_else_takes_no_file(pool: Pool) -> None:
    await insert_chat(pool, replace(IDLE, chat_id=OTHER), BEN)
    with pytest.raises(ChatNotFound):
        await Attachments(pool).keep(OTHER, ANN.id, file_id(1), REPORT)
    assert await PostgresFiles(pool).load([file_id(1)], ANN.id) == {}
