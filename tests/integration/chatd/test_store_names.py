"""What the code calls things in the database, and what they are called there."""

from datetime import timedelta

import asyncpg

from chatd.domain.chat import ChatId, NewMessage, Owner, OwnerId, Role
from chatd.domain.parts import Text
from chatd.store.chats import PostgresChats
from chatd.store.constraints import Constraint
from chatd.store.creation import NewChat
from chatd.store.keys import Keys
from chatd.store.statements import ClientKey
from parley.clock import FakeClock

ANN = Owner(OwnerId("00000000-0000-0000-0000-00000000000a"), "member")


async def test_every_constraint_is_known_to_the_code_by_its_name(
    pool: "asyncpg.Pool[asyncpg.Record]",
) -> None:
    rows = await pool.fetch(
        "SELECT conname FROM pg_constraint"
        " WHERE connamespace = 'chat'::regnamespace AND contype <> 'n'"
        " AND conrelid <> 'chat.alembic_version'::regclass"
    )
    assert {row["conname"] for row in rows} == set(Constraint)


async def test_old_keys_are_forgotten_and_young_ones_kept(
    pool: "asyncpg.Pool[asyncpg.Record]",
) -> None:
    async with PostgresChats(pool, lambda state: None, FakeClock()) as chats:
        for number in (1, 2):
            chat_id = ChatId(f"00000000-0000-0000-0000-00000000000{number}")
            message = NewMessage(Role.USER, (Text("hi"),), ANN.id)
            new = NewChat(chat_id, ANN, "t", has_own_title=True, messages=(message,))
            await chats.add(new, claimed_by=None, client_key=ClientKey(f"k{number}", b"h"))
        await pool.execute(
            "UPDATE chat.client_keys SET created_at = now() - interval '2 days' WHERE key = 'k1'"
        )
        await Keys(pool, chats).forget(timedelta(days=1), keys_max=10)
    assert [row["key"] for row in await pool.fetch("SELECT key FROM chat.client_keys")] == ["k2"]
