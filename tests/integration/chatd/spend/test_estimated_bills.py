"""Calls whose provider did not say what they used: estimated, charged once, and replaced."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from chatd.audit import audit
from chatd.chats.domain.commands import Interrupt
from chatd.chats.domain.pieces import Chunk, Piece
from chatd.chats.domain.transitions import fence_of
from chatd.content.domain.messages import FinishReason, Role
from chatd.content.domain.parts import Text
from chatd.models.domain.language_model import TextDelta
from chatd.models.domain.price import ModelUse
from chatd.primitives.domain.ids import MessageId, WorkerId
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.domain.usage import UsageReader
from chatd.spend.store.ledger import PostgresLedger
from chatd.spend.store.limits import PostgresLimits
from chatd.spend.store.open_calls import PostgresOpenCalls
from chatd.spend.store.usage import PostgresUsage
from chatd.streams.store.partials import PostgresPartials
from parley.postgres import Pool
from support.chatd.turns.billed_turns import ANN, CHAT, WORKER, BilledTurns, Stuck, billed_turns

# "hello" is 2 tokens by its bytes, "x" * 40 is 10: 2 * 0.5 + 10 * 2 micros.
SAID = "x" * 40
ESTIMATE_MICROS = 21
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
OTHER_WORKER = WorkerId("00000000-0000-0000-0000-0000000000bb")

SELECT_ENTRIES = """
    SELECT purpose, outcome, input_tokens, output_tokens, cost_micros, is_estimate, message_id
    FROM chat.usage ORDER BY created_at
"""
END_LEASE = "UPDATE chat.workers SET lease_until = now() - interval '1 s' WHERE id = $1"
COUNT_OPEN = "SELECT count(*) FROM chat.open_model_calls"


@pytest.fixture
async def turns(pool: Pool) -> AsyncIterator[BilledTurns]:
    async with billed_turns(pool) as turns:
        yield turns


async def entries(turns: BilledTurns) -> list[tuple[object, ...]]:
    await turns.bills.flushed_within(5)
    return [tuple(row) for row in await turns.pool.fetch(SELECT_ENTRIES)]


@asynccontextmanager
async def answering(turns: BilledTurns) -> AsyncIterator[asyncio.Task[None]]:
    """Run a turn whose model said something and says nothing more."""
    play = Stuck(TextDelta(SAID))
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        running = group.create_task(turns.run(await turns.create(), play))
        await play.said_all.wait()
        yield running


async def store_open_call(turns: BilledTurns) -> None:
    """Let the writer store the call that is under way."""
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        writing = group.create_task(turns.open_calls.run())
        while await turns.pool.fetchval(COUNT_OPEN) == 0:
            await turns.clock.until_sleeping(2)  # The writer, and what watches the model.
            turns.clock.advance(0.5)
        writing.cancel()


def entry(use: ModelUse) -> LedgerEntry:
    return LedgerEntry(CHAT, 2, 1, Bill(CallPurpose.TURN, CallOutcome.ABORTED, use))


GUESSED = ModelUse("m", 2, 10, cost_micros=ESTIMATE_MICROS, provider="p", is_estimate=True)
ACTUAL = ModelUse("m", 5, 20, cost_micros=43, provider="p")


async def test_an_interrupted_turn_costs_and_limits_see_it(
    turns: BilledTurns, chat_database: str
) -> None:
    async with answering(turns):
        await turns.do(Interrupt(MessageId(0), WORKER))
    assert await entries(turns) == [("turn", "interrupted", 2, 10, ESTIMATE_MICROS, True, 2)]
    limits = PostgresLimits(turns.pool)
    assert await limits.spent_micros(ANN.id, LONG_AGO) == ESTIMATE_MICROS
    (_, answer) = await turns.chats.history(CHAT)
    assert answer.finish_reason is FinishReason.INTERRUPTED
    assert answer.use is not None
    assert (answer.use.cost_micros, answer.use.is_estimate) == (ESTIMATE_MICROS, True)
    totals = (await PostgresUsage(turns.pool).of_tree(CHAT, UsageReader(ANN.id))).totals
    assert (totals.estimated_calls, totals.estimated_cost_micros) == (1, ESTIMATE_MICROS)
    assert [finding for finding in await audit(chat_database) if finding.count] == []


async def test_what_the_provider_reports_later_replaces_the_estimate_for_good(
    turns: BilledTurns,
) -> None:
    await turns.create()
    ledger = PostgresLedger(turns.pool)
    await ledger.enter(entry(GUESSED), ANN.id)
    assert await entries(turns) == [("turn", "aborted", 2, 10, ESTIMATE_MICROS, True, None)]
    await ledger.enter(entry(ACTUAL), ANN.id)
    actual = [("turn", "aborted", 5, 20, 43, False, None)]
    assert await entries(turns) == actual
    await ledger.enter(entry(GUESSED), ANN.id)
    await ledger.enter(entry(replace(ACTUAL, input_tokens=1)), ANN.id)
    assert await entries(turns) == actual


async def test_a_call_cut_by_a_crash_is_charged_once_by_another_process(
    turns: BilledTurns, chat_database: str
) -> None:
    other = PostgresOpenCalls(turns.pool, OTHER_WORKER)
    async with answering(turns) as running:
        await store_open_call(turns)
        assert await other.charge_abandoned(10) == 0
        await turns.pool.execute(END_LEASE, WORKER)
        assert [await other.charge_abandoned(10) for _ in range(2)] == [1, 0]
        crashed = [("turn", "aborted", 2, 10, ESTIMATE_MICROS, True, None)]
        assert await entries(turns) == crashed
        running.cancel()  # It was alive all the time, and enters its own bill late.
    assert await entries(turns) == crashed
    assert [finding for finding in await audit(chat_database) if finding.count] == []


async def test_a_call_of_a_deleted_chat_is_charged_to_its_owner(turns: BilledTurns) -> None:
    async with answering(turns) as running:
        await store_open_call(turns)
        await turns.pool.execute(END_LEASE, WORKER)
        await turns.pool.execute("DELETE FROM chat.chats")
        other = PostgresOpenCalls(turns.pool, OTHER_WORKER)
        assert await other.charge_abandoned(10) == 1
        running.cancel()
    spent = await PostgresLimits(turns.pool).spent_micros(ANN.id, LONG_AGO)
    assert spent == ESTIMATE_MICROS


async def test_an_interruption_that_a_crash_left_is_charged_with_its_answer(
    turns: BilledTurns, chat_database: str
) -> None:
    piece = Piece(Role.ASSISTANT, 0, Text(SAID))
    async with answering(turns) as running:
        await store_open_call(turns)
        fence = fence_of(await turns.chats.state(CHAT))
        chunk = Chunk(CHAT, fence.history_version, fence.generation_attempt, 1, (piece,))
        await PostgresPartials(turns.pool).add((chunk,))
        running.cancel()
    # As if the process had died before it could bill anything.
    await turns.bills.flushed_within(5)
    await turns.pool.execute("DELETE FROM chat.usage")
    await turns.pool.execute(END_LEASE, WORKER)
    await turns.do(Interrupt(MessageId(0), WORKER))
    other = PostgresOpenCalls(turns.pool, OTHER_WORKER)
    assert await other.charge_abandoned(10) == 0  # Left to the process that finishes it.
    state = await turns.chats.state(CHAT)
    await turns.run(state, Stuck())
    assert await entries(turns) == [("turn", "interrupted", 2, 10, ESTIMATE_MICROS, True, 2)]
    assert await other.charge_abandoned(10) == 1
    assert len(await entries(turns)) == 1
    assert [finding for finding in await audit(chat_database) if finding.count] == []


async def test_a_call_that_ended_leaves_nothing_behind(turns: BilledTurns) -> None:
    async with answering(turns) as running:
        await store_open_call(turns)
        running.cancel()
    async with asyncio.timeout(10), asyncio.TaskGroup() as group:
        writing = group.create_task(turns.open_calls.run())
        while await turns.pool.fetchval(COUNT_OPEN):
            await turns.clock.until_sleeping()
            turns.clock.advance(0.5)
        writing.cancel()
