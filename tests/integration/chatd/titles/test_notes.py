"""What models write about chats, and when it comes too late."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from chatd.chats.domain.chat import ChatState, NewMessage
from chatd.chats.domain.commands import FinishTurn
from chatd.chats.domain.transitions import fence_of
from chatd.chats.store.metadata import ChatChanges, Metadata
from chatd.content.domain.messages import Role
from chatd.content.domain.parts import Text
from chatd.models.domain.price import ModelUse
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.titles.store.title_store import ChatFacts, PostgresTitles
from parley.postgres import Pool
from support.chatd.turns.billed_turns import ANN, CHAT, BilledTurns, billed_turns

USE = ModelUse("m", 1, 1, cost_micros=2)
ANSWER = NewMessage(Role.ASSISTANT, (Text("hi"),))
SELECT_NOTES = "SELECT title, last_turn_summary, summary FROM chat.chats"
FALLBACK = "hello"


@pytest.fixture
async def turns(pool: Pool) -> AsyncIterator[BilledTurns]:
    async with billed_turns(pool) as running:
        yield running


@pytest.fixture
def notes(pool: Pool) -> PostgresTitles:
    return PostgresTitles(pool)


def entry(purpose: CallPurpose, history_version: int) -> LedgerEntry:
    return LedgerEntry(CHAT, history_version, 1, Bill(purpose, CallOutcome.DONE, USE))


async def finished(turns: BilledTurns) -> ChatState:
    """Make a chat with one finished turn."""
    state = await turns.create(FALLBACK)
    return await turns.do(FinishTurn(fence_of(state), (ANSWER,)))


async def notes_of(turns: BilledTurns) -> tuple[object, ...]:
    row = await turns.pool.fetchrow(SELECT_NOTES)
    assert row is not None
    return tuple(row)


async def billed(turns: BilledTurns) -> list[str]:
    return [row["purpose"] for row in await turns.pool.fetch("SELECT purpose FROM chat.usage")]


async def test_a_title_takes_the_place_of_the_fallback_and_is_billed_with_it(
    turns: BilledTurns, notes: PostgresTitles
) -> None:
    state = await turns.create(FALLBACK)
    title = entry(CallPurpose.TITLE, 1)
    version = await notes.set_title(title, ANN, title="Better", fallback=FALLBACK)
    assert version == state.snapshot_version
    assert await notes_of(turns) == ("Better", "", "")
    assert await billed(turns) == ["title"]


async def test_a_title_that_the_user_chose_wins_and_the_call_is_billed_all_the_same(
    turns: BilledTurns, notes: PostgresTitles
) -> None:
    await turns.create(FALLBACK)
    for mine in ("mine", FALLBACK):
        changes = ChatChanges(title=mine)
        await Metadata(turns.pool).change(CHAT, owner_id=ANN.id, changes=changes)
        title = entry(CallPurpose.TITLE, 1)
        assert await notes.set_title(title, ANN, title="Better", fallback=FALLBACK) is None
        assert await notes_of(turns) == (mine, "", "")
    assert await billed(turns) == ["title"]


async def test_a_label_and_a_summary_belong_to_the_history_they_were_made_from(
    turns: BilledTurns, notes: PostgresTitles
) -> None:
    state = await finished(turns)
    label = entry(CallPurpose.LABEL, state.history_version)
    summary = entry(CallPurpose.SUMMARY, state.history_version)
    assert await notes.set_generated_label(label, ANN, "All done") == state.snapshot_version
    assert await notes.set_generated_summary(summary, ANN, "They said hello.") is not None
    assert await notes_of(turns) == (FALLBACK, "All done", "They said hello.")
    await turns.send()
    assert await notes.set_generated_label(replace(label), ANN, "Too late") is None
    assert await notes.set_generated_summary(summary, ANN, "Too late.") is None
    assert await notes.set_label(CHAT, "Too late", state.history_version) is None
    assert await notes_of(turns) == (FALLBACK, "All done", "They said hello.")
    assert sorted(await billed(turns)) == ["label", "summary"]


async def test_turns_are_counted_since_the_last_summary(
    turns: BilledTurns, notes: PostgresTitles
) -> None:
    state = await finished(turns)
    version = state.history_version
    assert await notes.facts(CHAT) == ChatFacts(True, False, version, 1)
    await notes.set_generated_summary(entry(CallPurpose.SUMMARY, version), ANN, "One.")
    assert await notes.facts(CHAT) == ChatFacts(True, True, version, 0)
    state = await turns.send()
    state = await turns.do(FinishTurn(fence_of(state), (ANSWER,)))
    assert await notes.facts(CHAT) == ChatFacts(True, True, state.history_version, 1)


async def test_a_label_that_is_there_already_changes_nothing(
    turns: BilledTurns, notes: PostgresTitles
) -> None:
    state = await finished(turns)
    assert await notes.set_label(CHAT, "", state.history_version) is None
    assert await notes.set_label(CHAT, "Answer ready", state.history_version) is not None
    assert await notes.set_label(CHAT, "Answer ready", state.history_version) is None


async def test_a_child_has_a_report_and_no_label(turns: BilledTurns, notes: PostgresTitles) -> None:
    state = await finished(turns)
    assert await notes.set_report(CHAT, "A report.", state.history_version) is None
    await turns.pool.execute(
        "UPDATE chat.chats SET parent_chat_id = id, root_chat_id = gen_random_uuid()"
    )
    assert await notes.set_report(CHAT, "A report.", state.history_version) is not None
    assert await notes.set_label(CHAT, "Answer ready", state.history_version) is None
    assert await notes_of(turns) == (FALLBACK, "", "A report.")


async def test_the_newest_messages_come_in_order(turns: BilledTurns, notes: PostgresTitles) -> None:
    await finished(turns)
    newest = await notes.newest(CHAT, 50)
    assert [message.content for message in newest] == [(Text(FALLBACK),), (Text("hi"),)]
    assert [message.role for message in await notes.newest(CHAT, 1)] == [Role.ASSISTANT]


async def test_a_chat_that_is_gone_needs_no_notes(notes: PostgresTitles) -> None:
    assert await notes.facts(CHAT) is None
