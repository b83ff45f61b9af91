"""What the calls of a turn are billed with, whatever becomes of them."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from decimal import Decimal

import pytest

from chatd.chats.domain.chat import Status
from chatd.chats.domain.commands import (
    FailTurn,
    FinishInterruption,
    FinishTurn,
    Interrupt,
    RequestCompaction,
)
from chatd.content.domain.messages import ErrorKind, FinishReason, TurnError
from chatd.content.domain.parts import ToolCall
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallRequested,
    UsageReported,
)
from chatd.models.domain.price import ModelUse, Price
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, Fence, MessageId, Owner
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.turns.domain.turn import TurnSetup
from support.chatd.turns.turn_stage import ANN, CHAT, WORKER, Stage, live_parts, tool

PRICE = Price(Decimal("0.5"), Decimal(2))
PRICED = TurnSetup(ModelProfile("m", price=PRICE, provider="p"))
USED = UsageReported(10, 3)
USE = ModelUse("m", 10, 3, cost_micros=11, provider="p", price=PRICE)
PARTLY = replace(USE, is_estimate=True)  # Reported, but not to the end.
# Nothing was reported: 5 bytes were sent and 3 received.
GUESSED = ModelUse("m", 2, 1, cost_micros=3, provider="p", price=PRICE, is_estimate=True)
SENT_ONLY = replace(GUESSED, output_tokens=0, cost_micros=1)
BUSY = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)
DONE = Bill(CallPurpose.TURN, CallOutcome.DONE, USE)
FAILED = Bill(CallPurpose.TURN, CallOutcome.FAILED, PARTLY)
INTERRUPTED = Bill(CallPurpose.TURN, CallOutcome.INTERRUPTED, GUESSED)


class Parts:
    """Says each of its pieces in turn, one for each request; an error is raised."""

    def __init__(self, *plays: tuple[ModelEvent | ModelError, ...]) -> None:
        self._plays = list(plays)

    def __call__(self, _: ModelRequest) -> Iterable[ModelEvent]:
        for event in self._plays.pop(0):
            if isinstance(event, ModelError):
                raise event
            yield event


class Stuck:
    """Says some things and then nothing more."""

    def __init__(self, *events: ModelEvent) -> None:
        self._events = events

    async def __call__(self, _: ModelRequest) -> AsyncIterator[ModelEvent]:
        for event in self._events:
            yield event
        await asyncio.Event().wait()


class Silent:
    """Is asked and says nothing."""

    def __init__(self) -> None:
        self.is_asked = asyncio.Event()

    async def __call__(self, _: ModelRequest) -> AsyncIterator[ModelEvent]:
        self.is_asked.set()
        await asyncio.Event().wait()
        yield Finished()


class Refusing:
    """Lets some calls pass and refuses the others."""

    def __init__(self, passing: int) -> None:
        self._passing = passing

    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        self._passing -= 1
        return None if self._passing >= 0 else TurnError("spent", ErrorKind.USAGE_LIMIT)


def ledger(stage: Stage) -> list[LedgerEntry]:
    return list(stage.chats.chats[CHAT].ledger.values())


def entry(history: int, attempt: int, bill: Bill, message_id: int | None = None) -> LedgerEntry:
    return LedgerEntry(
        CHAT, history, attempt, bill, None if message_id is None else MessageId(message_id)
    )


async def test_an_answer_and_its_entry_are_one_commit() -> None:
    stage = Stage(Parts((TextDelta("hi"), USED, Finished())), setup=PRICED)
    await stage.ask()
    assert ledger(stage) == [entry(2, 1, DONE, message_id=2)]
    assert [type(command) for command in stage.commits.commands] == [FinishTurn]
    assert stage.messages[1].use == USE


async def test_every_step_has_an_entry_of_its_own() -> None:
    call = ToolCallRequested(ToolCall("a", "one", "{}"))
    stage = Stage(
        Parts((call, USED, Finished()), (TextDelta("hi"), USED, Finished())),
        tool("one"),
        setup=PRICED,
    )
    await stage.ask()
    assert [each.message_id for each in ledger(stage)] == [2, 4]
    assert [each.bill for each in ledger(stage)] == [DONE, DONE]


async def test_a_failed_attempt_that_used_tokens_is_billed_with_its_retry() -> None:
    stage = Stage(
        Parts((TextDelta("h"), USED, BUSY), (TextDelta("hi"), USED, Finished())), setup=PRICED
    )
    stage.send()
    async with stage.running():
        stage.clock.advance(await stage.clock.until_sleeping())
    use = replace(USE, runtime_ms=1000)
    assert ledger(stage) == [
        entry(2, 1, FAILED),
        entry(2, 2, Bill(CallPurpose.TURN, CallOutcome.DONE, use), message_id=2),
    ]


async def test_an_attempt_that_never_began_is_not_billed() -> None:
    stage = Stage(Parts((BUSY,), (TextDelta("hi"), USED, Finished())), setup=PRICED)
    stage.send()
    async with stage.running():
        stage.clock.advance(await stage.clock.until_sleeping())
    assert [each.bill.outcome for each in ledger(stage)] == [CallOutcome.DONE]


async def test_a_failure_that_ends_the_turn_is_billed_with_it() -> None:
    broken = ModelError(ErrorKind.AUTH, "no", is_retryable=False)
    stage = Stage(Parts((USED, broken)), setup=PRICED)
    await stage.ask()
    error = replace(broken.turn_error, attempts=1)
    assert stage.commits.commands == [FailTurn(Fence(1, 2, 1), error, FAILED)]
    assert ledger(stage) == [entry(2, 1, FAILED)]


async def test_an_answer_that_was_held_back_is_billed_as_failed() -> None:
    stage = Stage(Parts((USED, Finished(FinishReason.CONTENT_FILTER))), setup=PRICED)
    await stage.ask()
    assert ledger(stage) == [entry(2, 1, replace(FAILED, use=USE))]


async def test_an_answer_without_words_is_billed_without_a_message() -> None:
    stage = Stage(Parts((USED, Finished())), setup=PRICED)
    await stage.ask()
    assert ledger(stage) == [entry(2, 1, DONE)]


async def test_an_interrupted_answer_is_billed_with_what_is_kept_of_it() -> None:
    stage = Stage(Stuck(USED, TextDelta("hal")), setup=PRICED)
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            await live_parts(watcher, 1)
            stage.interrupt()
    interrupted = Bill(CallPurpose.TURN, CallOutcome.INTERRUPTED, PARTLY)
    assert ledger(stage) == [entry(2, 1, interrupted, message_id=2)]
    assert stage.messages[1].use == PARTLY


async def test_an_interrupted_answer_without_a_report_is_billed_by_an_estimate() -> None:
    stage = Stage(Stuck(TextDelta("hal")), setup=PRICED)
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            await live_parts(watcher, 1)
            stage.interrupt()
    assert ledger(stage) == [entry(2, 1, INTERRUPTED, message_id=2)]
    assert stage.messages[1].use == GUESSED


async def test_more_output_than_was_reported_so_far_is_estimated() -> None:
    stage = Stage(Stuck(UsageReported(10, 1), TextDelta("x" * 400)), setup=PRICED)
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            await live_parts(watcher, 1)
            stage.interrupt()
    (made,) = ledger(stage)
    use = made.bill.use
    assert (use.input_tokens, use.output_tokens, use.is_estimate) == (10, 100, True)


async def test_a_call_that_is_interrupted_before_its_first_word_costs_what_was_sent() -> None:
    model = Silent()
    stage = Stage(model, setup=PRICED)
    stage.send()
    async with stage.running():
        await model.is_asked.wait()
        stage.interrupt()
    sent = Bill(CallPurpose.TURN, CallOutcome.INTERRUPTED, SENT_ONLY)
    assert ledger(stage) == [entry(2, 1, sent)]


async def test_an_answer_without_a_report_is_billed_by_an_estimate() -> None:
    stage = Stage(Parts((TextDelta("hal"), Finished())), setup=PRICED)
    await stage.ask()
    done = Bill(CallPurpose.TURN, CallOutcome.DONE, GUESSED)
    assert ledger(stage) == [entry(2, 1, done, message_id=2)]


async def test_a_stream_that_was_cut_is_billed_by_an_estimate() -> None:
    stage = Stage(
        Parts((TextDelta("hal"), BUSY), (TextDelta("hi"), USED, Finished())), setup=PRICED
    )
    stage.send()
    async with stage.running():
        stage.clock.advance(await stage.clock.until_sleeping())
    failed = Bill(CallPurpose.TURN, CallOutcome.FAILED, GUESSED)
    assert ledger(stage)[0] == entry(2, 1, failed)


async def test_a_finished_answer_that_meets_an_interrupt_is_billed_as_done() -> None:
    stages: list[Stage] = []

    def stopped(_: ModelRequest) -> Iterable[ModelEvent]:
        yield TextDelta("hi")
        yield USED
        stages[0].chats.apply_now(CHAT, Interrupt(MessageId(0), WORKER))
        yield Finished()

    stage = Stage(stopped, setup=PRICED)
    stages.append(stage)
    await stage.ask()
    assert isinstance(stage.commits.commands[-1], FinishInterruption)
    assert ledger(stage) == [entry(2, 1, DONE, message_id=2)]
    assert stage.messages[1].use == USE


async def test_a_call_whose_chat_was_taken_away_is_billed_late() -> None:
    stage = Stage(Stuck(USED, TextDelta("hal")), setup=PRICED)
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            await live_parts(watcher, 1)
            taken = replace(
                stage.state,
                snapshot_version=stage.state.snapshot_version + 1,
                owner_epoch=stage.state.owner_epoch + 1,
                generation_attempt=2,
            )
            stage.chats.chats[CHAT].state = taken
            stage.mailbox.put(taken)
    aborted = Bill(CallPurpose.TURN, CallOutcome.ABORTED, PARTLY)
    assert stage.billed_late == [(entry(2, 1, aborted), ANN.id)]
    assert ledger(stage) == []


async def test_a_call_that_is_cancelled_with_its_process_is_billed_late() -> None:
    stage = Stage(Stuck(USED, TextDelta("hal")), setup=PRICED)
    stage.send()
    with stage.watch() as watcher:
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            running = group.create_task(stage.run())
            await live_parts(watcher, 1)
            running.cancel()
    assert [late.bill.outcome for late, _ in stage.billed_late] == [CallOutcome.ABORTED]


async def test_a_summary_is_billed_as_one() -> None:
    stage = Stage(
        Parts((TextDelta("hi"), USED, Finished()), (TextDelta("sum"), USED, Finished())),
        setup=PRICED,
    )
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    await stage.run()
    made = ledger(stage)[-1]
    assert made.bill == Bill(CallPurpose.COMPACTION, CallOutcome.DONE, USE)
    assert stage.messages[-2].id == made.message_id
    assert stage.messages[-2].use == USE


async def test_an_interrupted_summary_is_billed_without_an_answer() -> None:
    def play(request: ModelRequest) -> Iterable[ModelEvent] | AsyncIterator[ModelEvent]:
        if request.may_call_tools:
            return (TextDelta("hi"), Finished())
        return Stuck(USED, TextDelta("sum"))(request)

    stage = Stage(play, setup=PRICED)
    await stage.ask()
    stage.do(RequestCompaction(WORKER))
    with stage.watch() as watcher:
        async with stage.running():
            await live_parts(watcher, 1)
            await stage.clock.until_sleeping()
            stage.interrupt()
    made = ledger(stage)[-1]
    assert made.bill == Bill(CallPurpose.COMPACTION, CallOutcome.INTERRUPTED, PARTLY)
    assert made.message_id is None


async def test_counts_that_cannot_be_true_are_not_stored(
    caplog: pytest.LogCaptureFixture,
) -> None:
    stage = Stage(Parts((TextDelta("hi"), UsageReported(10**12 + 1, -1), Finished())), setup=PRICED)
    await stage.ask()
    guessed = Bill(CallPurpose.TURN, CallOutcome.DONE, GUESSED)
    assert ledger(stage) == [entry(2, 1, guessed, message_id=2)]
    assert "cannot be true" in caplog.text


async def test_a_limit_that_is_reached_in_a_turn_ends_it_without_another_call() -> None:
    call = ToolCallRequested(ToolCall("a", "one", "{}"))
    stage = Stage(
        Parts((call, USED, Finished())), tool("one"), setup=PRICED, spending=Refusing(passing=1)
    )
    await stage.ask()
    assert (stage.status, stage.state.last_error) == (
        Status.ERROR,
        TurnError("spent", ErrorKind.USAGE_LIMIT),
    )
    assert len(stage.model.requests) == 1
    assert len(ledger(stage)) == 1


async def test_a_queued_message_is_promoted_although_the_limit_was_reached_meanwhile() -> None:
    stage = Stage(Stuck(USED, TextDelta("hal")), setup=PRICED, spending=Refusing(passing=1))
    stage.send("first")
    stage.send("second")
    with stage.watch() as watcher:
        async with stage.running():
            await live_parts(watcher, 1)
            stage.interrupt()
    assert [text for role, text in stage.texts if role == "user"] == ["first", "second"]
    assert stage.state.last_error == TurnError("spent", ErrorKind.USAGE_LIMIT)
