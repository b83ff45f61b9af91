"""Messages that an older version stored, without an origin, after the upgrade."""

import json
import shutil
import uuid
from pathlib import Path

import pytest

from chatd.chats.store.queries import MESSAGE_COLUMNS, SELECT_QUEUE
from chatd.chats.store.rows import message_of, queue_of, queued_message_of
from chatd.content.domain.messages import MessageOrigin
from chatd.schema import MIGRATIONS, SCHEMA
from parley.postgres import Database, migrate
from support.chatd.chats.chat_people import ANN_ID
from support.database.postgres import empty_database, postgres

__all__ = ["empty_database", "postgres"]

BEFORE = "0047"
ROOT, AGENT, RACE, CANDIDATE = (str(uuid.UUID(int=number)) for number in range(1, 5))
CHECKED = (
    "The goal is not reached: the check `make test` ended with exit code 2. What it printed:\n\n"
    '1 "failed": all\u0000\n\nThe goal is:\n\nAll pass.\n\nContinue until the check passes.'
)
JUDGED = (
    "The goal is not reached, says the model that judges it. Why:\n\nOne is left.\n\nThe goal "
    "is:\n\nAll.\n\nContinue until it is reached."
)
WOKEN = "Woken by a monitor: the background process p1 (`npm run dev`) ended: its exit code is 0."
ABOUT = "The goal is not reached: why? Continue until the check passes."
INSERT_CHAT = """
    INSERT INTO chat.chats (id, owner_id, owner_role, title, has_own_title, parent_chat_id,
        root_chat_id, model_id, reasoning_effort, mode, labels, pin_order, summary,
        last_turn_summary, client_tools, last_read_message_id, created_at)
    VALUES ($1::uuid, $2, 'member', 'A chat', false, $3::uuid, coalesce($3::uuid, $1::uuid),
        '', '', '', '{}', 0, '', '', '[]', 0, '2026-01-01Z')
"""
INSERT_MESSAGE = """
    INSERT INTO chat.chat_messages (chat_id, id, revision, role, visibility, content,
        content_version, is_compressed, is_deleted, created_by, created_at)
    VALUES ($1, $2::bigint, 1, $3, $4, $5, 1, false, false, $6,
        '2026-01-01Z'::timestamptz + interval '1 second' * ($2::bigint - 1))
"""
INSERT_RACE = "INSERT INTO chat.races (chat_id, check_command) VALUES ($1, '')"
INSERT_QUEUED = """
    INSERT INTO chat.chat_queue (chat_id, id, position, content, content_version, created_by,
        created_at)
    VALUES ($1, $2, $3, $4, 1, $5, '2026-01-01Z')
"""


def content(text: str) -> str:
    return json.dumps([{"type": "text", "text": text}], separators=(",", ":"))


def scripts_before(directory: Path) -> Path:
    """Copy the scripts of the version before, and return where they are."""
    versions = directory / "versions"
    versions.mkdir()
    for script in (MIGRATIONS / "versions").glob("*.py"):
        if script.stem.partition("_")[0] <= BEFORE:
            shutil.copy(script, versions)
    return directory


@pytest.fixture
async def older_database(empty_database: str, tmp_path: Path) -> str:
    """A database of the version before, with messages of all senders."""
    await migrate(empty_database, schema=SCHEMA, scripts=scripts_before(tmp_path))
    said = (
        (ROOT, 1, "user", "both", "hello", ANN_ID),
        (ROOT, 2, "assistant", "both", "hi", ""),
        (ROOT, 3, "user", "both", CHECKED, ANN_ID),
        (ROOT, 4, "user", "both", JUDGED, ANN_ID),
        (ROOT, 5, "user", "both", WOKEN, ANN_ID),
        (ROOT, 6, "user", "both", ABOUT, ANN_ID),
        (ROOT, 7, "user", "model", "Summary", ""),
        (AGENT, 1, "user", "both", "Look.", ANN_ID),
        (AGENT, 2, "user", "both", "And?", ANN_ID),
        (CANDIDATE, 1, "user", "both", "Race.", ANN_ID),
    )
    async with Database.open(
        empty_database, application_name="test", connections_max=2
    ) as database:
        pool = database.pool
        parents = ((ROOT, None), (AGENT, ROOT), (RACE, None), (CANDIDATE, RACE))
        for chat_id, parent_id in parents:
            await pool.execute(INSERT_CHAT, chat_id, ANN_ID, parent_id)
        await pool.execute(INSERT_RACE, RACE)
        for chat_id, number, role, visibility, text, sender in said:
            row = (chat_id, number, role, visibility, content(text), sender)
            await pool.execute(INSERT_MESSAGE, *row)
        for place, text in enumerate(("later", WOKEN)):
            queued_id = str(uuid.UUID(int=10 + place))
            await pool.execute(INSERT_QUEUED, ROOT, queued_id, place, content(text), ANN_ID)
    await migrate(empty_database, schema=SCHEMA, scripts=MIGRATIONS)
    return empty_database


async def test_messages_of_an_older_version_are_a_persons_unless_they_tell_otherwise(
    older_database: str,
) -> None:
    query = f"SELECT {MESSAGE_COLUMNS} FROM chat.chat_messages WHERE chat_id = $1 ORDER BY id"
    async with Database.open(
        older_database, application_name="test", connections_max=2
    ) as database:
        pool = database.pool
        found = {
            chat_id: [message_of(row).origin for row in await pool.fetch(query, chat_id)]
            for chat_id in (ROOT, AGENT, CANDIDATE)
        }
        queued = [queued_message_of(row).origin for row in await pool.fetch(SELECT_QUEUE, ROOT)]

    person, monitor = MessageOrigin.PERSON, MessageOrigin.MONITOR
    goals, system = [MessageOrigin.GOAL] * 2, MessageOrigin.SYSTEM
    assert found == {
        ROOT: [person, None, *goals, monitor, person, system],
        AGENT: [MessageOrigin.AGENT, person],
        CANDIDATE: [person],
    }
    assert queued == [person, monitor]


def test_a_queue_that_an_older_version_kept_with_a_key_is_read() -> None:
    kept = [[str(uuid.UUID(int=9)), content("later"), ANN_ID, "2026-01-01T00:00:00Z", None]]
    (queued,) = queue_of(json.dumps(kept))
    assert (queued.created_by, queued.origin) == (ANN_ID, MessageOrigin.PERSON)
