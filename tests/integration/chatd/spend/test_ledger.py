"""The ledger: one row for each call of a model, whatever became of it, and never two."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal

import pytest

from chatd.audit import audit
from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import FinishTurn, Interrupt, RequestCompaction
from chatd.chats.domain.errors import FenceLost
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.trees import ChatTrees
from chatd.content.domain.messages import ErrorKind
from chatd.content.domain.parts import ToolCall
from chatd.models.domain.language_model import Finished, ModelError, TextDelta, ToolCallRequested
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import ChatId, Fence, MessageId
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.store.ledger import PostgresLedger
from parley.postgres import Pool
from support.chatd.turns.billed_turns import (
    ANN,
    CHAT,
    COST_MICROS,
    PROFILE,
    USED,
    WORKER,
    BilledTurns,
    Plays,
    Stuck,
    billed_turns,
)
from support.database.conflicts import RETRIES

BUSY = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)
ANSWER = (TextDelta("hi"), USED, Finished())
USE = ModelUse(
    "m", 10, 3, cost_micros=COST_MICROS, provider="p", model_name="big", price=PROFILE.price
)


@pytest.fixture
async def turns(pool: Pool) -> AsyncIterator[BilledTurns]:
    async with billed_turns(pool) as running:
        yield running


async def test_an_answer_is_entered_with_its_price_and_its_owner(turns: BilledTurns) -> None:
    await turns.run(await turns.create(), Plays(ANSWER))
    (row,) = await turns.pool.fetch("SELECT * FROM chat.usage")
    message = await turns.pool.fetchrow(
        "SELECT created_at FROM chat.chat_messages WHERE role = 'assistant'"
    )
    assert message is not None
    found = dict(row)
    del found["id"]
    assert found == {
        "chat_id": row["chat_id"],
        "root_chat_id": row["chat_id"],
        "owner_id": row["owner_id"],
        "purpose": "turn",
        "provider": "p",
        "model": "m",
        "outcome": "done",
        "input_tokens": 10,
        "output_tokens": 3,
        "reasoning_tokens": 0,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        "input_price": Decimal("0.5"),
        "output_price": Decimal(2),
        "cache_read_price": None,
        "cache_write_price": None,
        "cost_micros": COST_MICROS,
        "model_runtime_ms": 0,
        "created_at": message["created_at"],
        "message_id": 2,
        "model_name": "big",
        "is_estimate": False,
        "is_fallback": False,
    }
    assert (str(row["chat_id"]), str(row["owner_id"])) == (CHAT, ANN.id)


async def test_steps_and_summaries_have_rows_of_their_own(
    turns: BilledTurns, chat_database: str
) -> None:
    call = ToolCallRequested(ToolCall("a", "unknown", "{}"))
    await turns.run(await turns.create(), Plays((call, USED, Finished()), ANSWER))
    state = await turns.do(RequestCompaction(WORKER))
    await turns.run(state, Plays((TextDelta("so far"), USED, Finished())))
    assert await turns.ledger() == [
        ("turn", "done", COST_MICROS, 2),
        ("turn", "done", COST_MICROS, 4),
        ("compaction", "done", COST_MICROS, 6),
    ]
    assert [finding for finding in await audit(chat_database) if finding.count] == []


async def test_a_failed_attempt_that_used_tokens_costs_too(turns: BilledTurns) -> None:
    state = await turns.create()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(turns.run(state, Plays((TextDelta("h"), USED, BUSY), ANSWER)))
        turns.clock.advance(await turns.clock.until_sleeping())
    assert await turns.ledger() == [
        ("turn", "failed", COST_MICROS, None),
        ("turn", "done", COST_MICROS, 2),
    ]


async def test_a_failure_that_ends_the_turn_costs_too(turns: BilledTurns) -> None:
    no_key = ModelError(ErrorKind.AUTH, "no key", is_retryable=False)
    await turns.run(await turns.create(), Plays((USED, no_key)))
    assert await turns.ledger() == [("turn", "failed", COST_MICROS, None)]
    assert (await turns.chats.state(CHAT)).status is Status.ERROR


async def test_an_interrupted_answer_is_entered_with_what_is_kept(turns: BilledTurns) -> None:
    play = Stuck(USED, TextDelta("hal"))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(turns.run(await turns.create(), play))
        await play.said_all.wait()
        await turns.do(Interrupt(MessageId(0), WORKER))
    assert await turns.ledger() == [("turn", "interrupted", COST_MICROS, 2)]


async def test_a_call_whose_chat_was_taken_away_is_entered_by_itself(turns: BilledTurns) -> None:
    play = Stuck(USED, TextDelta("hal"))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(turns.run(await turns.create(), play))
        await play.said_all.wait()
        await turns.pool.execute(
            "UPDATE chat.chat_exec SET owner_epoch = owner_epoch + 1,"
            " generation_attempt = generation_attempt + 1, snapshot_version = snapshot_version + 1"
        )
        turns.mailboxes[CHAT].put(await turns.chats.state(CHAT))
    assert await turns.ledger() == [("turn", "aborted", COST_MICROS, None)]


async def test_what_a_deleted_chat_cost_stays_with_its_owner(turns: BilledTurns) -> None:
    play = Stuck(USED, TextDelta("hal"))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        group.create_task(turns.run(await turns.create(), play))
        await play.said_all.wait()
        trees = ChatTrees(turns.pool, turns.mailboxes[CHAT].put, RETRIES)
        await trees.delete(CHAT, owner_id=ANN.id)
    assert await turns.ledger() == [("turn", "aborted", COST_MICROS, None)]
    row = await turns.pool.fetchrow("SELECT root_chat_id, owner_id FROM chat.usage")
    assert row is not None
    assert (str(row["root_chat_id"]), str(row["owner_id"])) == (CHAT, ANN.id)


async def test_a_commit_that_nobody_heard_of_bills_once(turns: BilledTurns) -> None:
    state = await turns.create()
    turns.cut.cuts.append("chat.usage")
    await turns.run(state, Plays(ANSWER))
    assert await turns.ledger() == [("turn", "done", COST_MICROS, 2)]
    assert (await turns.chats.state(CHAT)).status is Status.WAITING


async def test_a_bill_that_was_entered_twice_is_there_once(turns: BilledTurns) -> None:
    state = await turns.create()
    fence = fence_of(state)
    bill = Bill(CallPurpose.TURN, CallOutcome.DONE, USE)
    entry = LedgerEntry(CHAT, fence.history_version, fence.generation_attempt, bill)
    ledger = PostgresLedger(turns.pool)
    await ledger.enter(replace(entry, bill=replace(bill, outcome=CallOutcome.ABORTED)), ANN.id)
    await turns.run(state, Plays(ANSWER))
    await ledger.enter(entry, ANN.id)
    assert await turns.ledger() == [("turn", "done", COST_MICROS, 2)]


async def test_a_refused_commit_bills_nothing(turns: BilledTurns) -> None:
    await turns.create()
    bill = Bill(CallPurpose.TURN, CallOutcome.DONE, USE)
    with pytest.raises(FenceLost):
        await turns.chats.apply(CHAT, FinishTurn(Fence(9, 9, 9), (), bill))
    assert await turns.ledger() == []


async def test_calls_of_one_episode_for_different_purposes_are_different(
    turns: BilledTurns,
) -> None:
    ledger = PostgresLedger(turns.pool)
    chat_id = ChatId("00000000-0000-0000-0000-0000000000cc")
    for purpose in CallPurpose:
        for outcome in CallOutcome:
            bill = Bill(purpose, outcome, USE)
            await ledger.enter(LedgerEntry(chat_id, 1, 1, bill), ANN.id)
    rows = await turns.pool.fetch("SELECT purpose, outcome FROM chat.usage")
    assert sorted(map(tuple, rows)) == sorted((purpose.value, "done") for purpose in CallPurpose)
