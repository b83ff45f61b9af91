"""Limits over a real ledger: a turn that reaches its limit ends before its next call."""

from collections.abc import AsyncIterator

import asyncpg
import pytest

from chatd.chats.domain.chat import Status
from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.parts import ToolCall
from chatd.models.domain.language_model import Finished, TextDelta, ToolCallRequested
from chatd.primitives.store.constraints import Constraint
from chatd.spend.domain.limits import EVERYONE, LimitPeriod, SpendLimit
from chatd.spend.engine.enforcement import LimitedSpending
from chatd.spend.store.limits import PostgresLimits
from parley.clock import FakeClock
from parley.postgres import Pool
from support.chatd.turns.billed_turns import (
    ANN,
    CHAT,
    COST_MICROS,
    USED,
    BilledTurns,
    Plays,
    billed_turns,
)
from support.chatd.users.fixed_users import KnownGroups

CALL = ToolCallRequested(ToolCall("a", "unknown", "{}"))
ANSWER = (TextDelta("hi"), USED, Finished())
LIMIT = SpendLimit(EVERYONE, COST_MICROS, LimitPeriod.MONTH)


@pytest.fixture
async def turns(pool: Pool) -> AsyncIterator[BilledTurns]:
    async with billed_turns(pool) as running:
        yield running


async def test_a_turn_that_reaches_its_limit_ends_before_its_next_call(turns: BilledTurns) -> None:
    limits = PostgresLimits(turns.pool)
    await limits.put(LIMIT)
    spending = LimitedSpending(limits, KnownGroups(), turns.clock)
    play = Plays((CALL, USED, Finished()), ANSWER)
    await turns.run(await turns.create(), play, spending)
    state = await turns.chats.state(CHAT)
    assert state.status is Status.ERROR
    assert state.last_error is not None
    assert state.last_error.kind is ErrorKind.USAGE_LIMIT
    assert await turns.ledger() == [("turn", "done", COST_MICROS, 2)]


async def test_a_raised_limit_lets_the_next_turn_run(turns: BilledTurns) -> None:
    limits = PostgresLimits(turns.pool)
    await limits.put(LIMIT)
    spending = LimitedSpending(limits, KnownGroups(), turns.clock)
    await turns.run(await turns.create(), Plays(ANSWER), spending)
    await turns.run(await turns.send(), Plays(), spending)
    assert (await turns.chats.state(CHAT)).status is Status.ERROR
    await limits.put(SpendLimit(EVERYONE, 2 * COST_MICROS, LimitPeriod.MONTH))
    spending.forget()
    await turns.run(await turns.send(), Plays(ANSWER), spending)
    assert (await turns.chats.state(CHAT)).status is Status.WAITING


async def test_what_has_no_price_counts_nothing(pool: Pool) -> None:
    limits = PostgresLimits(pool)
    spending = LimitedSpending(limits, KnownGroups(), FakeClock())
    await limits.put(LIMIT)
    await pool.execute(
        "INSERT INTO chat.usage (id, chat_id, root_chat_id, owner_id, purpose, provider, model,"
        " outcome, input_tokens, output_tokens, reasoning_tokens, cache_read_tokens,"
        " cache_write_tokens, model_runtime_ms, created_at)"
        " VALUES ($1, $1, $1, $2, 'turn', '', '', 'done', 9, 9, 0, 0, 0, 0, now())",
        CHAT,
        ANN.id,
    )
    assert (await spending.spend_status(ANN.id, ())).spent_micros == 0


@pytest.mark.parametrize(
    ("values", "constraint"),
    [
        ("('nobody', gen_random_uuid(), 1, 'day')", Constraint.SPEND_LIMITS_SUBJECT_KNOWN),
        ("('everyone', gen_random_uuid(), 1, 'day')", Constraint.SPEND_LIMITS_ONE_FOR_EVERYONE),
        ("('user', gen_random_uuid(), 0, 'day')", Constraint.SPEND_LIMITS_BOUNDED),
        ("('user', gen_random_uuid(), 1, 'year')", Constraint.SPEND_LIMITS_PERIOD_KNOWN),
    ],
)
async def test_the_database_refuses_limits_that_cannot_be(
    pool: Pool, values: str, constraint: Constraint
) -> None:
    with pytest.raises(asyncpg.CheckViolationError) as refused:
        await pool.execute(f"INSERT INTO chat.spend_limits VALUES {values}")
    assert refused.value.constraint_name == constraint
