"""Databases from before the ledger named answers."""

import pytest
from alembic.script import ScriptDirectory

from chatd.audit import audit
from chatd.chats.domain.chat import NewMessage
from chatd.chats.domain.commands import FinishTurn
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.models.domain.price import ModelUse
from chatd.schema import MIGRATIONS
from parley.postgres import Pool
from support.chatd.turns.billed_turns import billed_turns

USE = ModelUse("m", 10, 20, cost_micros=7, model_runtime_ms=9)


@pytest.fixture
def backfill() -> str:
    """The statement of the migration that enters what was answered before it."""
    scripts = ScriptDirectory(str(MIGRATIONS))
    changes: str = scripts.get_revision("0003").module.CHANGES
    return changes[changes.index("INSERT INTO chat.usage") :]


async def test_answers_from_before_are_entered_by_the_migration(
    pool: Pool, chat_database: str, backfill: str
) -> None:
    async with billed_turns(pool) as turns:
        state = await turns.create()
        answer = NewMessage(Role.ASSISTANT, (Text("hi"),), use=USE)
        await turns.do(FinishTurn(fence_of(state), (answer,)))
        await pool.execute(backfill)
        assert await turns.ledger() == [("turn", "done", 7, 2)]
    assert [finding for finding in await audit(chat_database) if finding.count] == []
