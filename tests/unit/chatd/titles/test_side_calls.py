"""Small generations: which model, how long, and what they are billed with."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from decimal import Decimal

import pytest

from chatd.content.domain.messages import ErrorKind, Role, TurnError
from chatd.content.domain.parts import Text
from chatd.content.domain.prompts import PromptMessage
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
    UsageReported,
)
from chatd.models.domain.price import ModelUse, Price
from chatd.models.domain.profile import ModelProfile
from chatd.primitives.domain.ids import ChatId, Owner, OwnerId
from chatd.providers.scripted import Play
from chatd.spend.domain.ledger import Bill, CallOutcome, CallPurpose, LedgerEntry
from chatd.spend.domain.limits import Spending
from chatd.turns.domain.ports import UtilityModels
from chatd.turns.domain.turn import TurnSetup
from chatd.turns.engine.side_calls import Generated, SideCallPorts, SideCallRequest, SideCalls
from parley.clock import FakeClock
from support.chatd.turns.absent_ports import NoCallObserver, Unlimited
from support.chatd.turns.fixed_setups import FixedSetups, FixedUtilityModels
from support.chatd.turns.turn_stage import NotingModel

CHAT = ChatId("c")
ANN = Owner(OwnerId("ann"), "member")
OWN = ModelProfile("own", price=Price(Decimal(1), Decimal(1)), provider="p")
SMALL = ModelProfile("small", output_tokens_max=50)
DEMO = ModelProfile("scripted")
QUESTION = SideCallRequest(
    CHAT,
    ANN,
    3,
    CallPurpose.TITLE,
    (PromptMessage(Role.USER, (Text("name it"),)),),
    tokens_max=256,
    call_s=30.0,
    total_s=30.0,
)
USED = UsageReported(5, 2)
USE = ModelUse("own", 5, 2, cost_micros=7, provider="p", price=OWN.price)
BUSY = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True)


def answer(_: ModelRequest) -> Iterable[ModelEvent]:
    return (TextDelta("A "), TextDelta("title"), USED, Finished())


async def stuck(_: ModelRequest) -> AsyncIterator[ModelEvent]:
    yield USED
    await asyncio.Event().wait()


class Spent:
    async def refusal(self, chat_id: ChatId, owner: Owner) -> TurnError | None:
        return TurnError("spent", ErrorKind.USAGE_LIMIT)


class Unusable:
    async def for_purpose(
        self, chat_id: ChatId, owner: Owner, purpose: CallPurpose
    ) -> ModelProfile | None:
        raise ModelError(ErrorKind.CONFIG, "switched off", is_retryable=False)


class Asking:
    """A quick model with all that it needs."""

    def __init__(
        self,
        play: Play = answer,
        *,
        own: ModelProfile = OWN,
        utility: UtilityModels | None = None,
        spending: Spending | None = None,
        fallback: ModelProfile | None = None,
    ) -> None:
        self.clock = FakeClock()
        self.model = NotingModel(play)
        self.billed: list[tuple[LedgerEntry, OwnerId]] = []
        self.side_calls = SideCalls(
            SideCallPorts(
                self.model,
                FixedSetups(TurnSetup(own, fallback=fallback)),
                utility or FixedUtilityModels(),
                spending or Unlimited(),
                lambda entry, owner_id: self.billed.append((entry, owner_id)),
                NoCallObserver(),
            ),
            clock=self.clock,
            jitter=lambda: 0.0,
        )


def entry(attempt: int, outcome: CallOutcome, use: ModelUse = USE) -> LedgerEntry:
    return LedgerEntry(CHAT, 3, attempt, Bill(CallPurpose.TITLE, outcome, use))


async def test_an_answer_comes_with_its_bill_for_whoever_stores_it() -> None:
    asking = Asking()
    assert await asking.side_calls.ask(QUESTION) == Generated("A title", entry(1, CallOutcome.DONE))
    assert asking.billed == []
    assert asking.model.requests == [
        ModelRequest(
            "own",
            QUESTION.prompt,
            (),
            may_call_tools=False,
            output_tokens_max=256,
            chat_id=CHAT,
            owner_id=ANN.id,
        )
    ]


async def test_the_model_that_is_set_goes_before_the_chats_own() -> None:
    asking = Asking(utility=FixedUtilityModels(SMALL))
    await asking.side_calls.ask(QUESTION)
    (request,) = asking.model.requests
    assert (request.model, request.output_tokens_max) == ("small", 50)


async def test_a_model_that_thinks_gets_room_for_it() -> None:
    asking = Asking(own=replace(OWN, reasoning_effort="high"))
    await asking.side_calls.ask(QUESTION)
    (request,) = asking.model.requests
    assert (request.output_tokens_max, request.reasoning_effort) == (256 + 1024, "")


async def test_a_model_that_is_set_and_unusable_is_not_replaced() -> None:
    asking = Asking(utility=Unusable())
    with pytest.raises(ModelError):
        await asking.side_calls.ask(QUESTION)
    assert asking.model.requests == []


@pytest.mark.parametrize(
    "asking",
    [
        Asking(own=DEMO, utility=FixedUtilityModels(SMALL)),
        Asking(utility=FixedUtilityModels(DEMO)),
        Asking(own=ModelProfile("x", provider_id="scripted")),
        Asking(spending=Spent()),
    ],
    ids=["the demo", "the demo as it is set", "a script by another name", "nothing left to spend"],
)
async def test_some_are_never_asked(asking: Asking) -> None:
    assert await asking.side_calls.ask(QUESTION) is None
    assert asking.model.requests == []


async def test_a_failure_is_tried_again_within_the_time_and_billed() -> None:
    plays = [(USED, BUSY), (TextDelta("A title"), USED, Finished())]

    def play(_: ModelRequest) -> Iterable[ModelEvent]:
        for event in plays.pop(0):
            if isinstance(event, ModelError):
                raise event
            yield event

    asking = Asking(play)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = group.create_task(asking.side_calls.ask(QUESTION))
        assert await asking.clock.until_sleeping() == 1
        asking.clock.advance(1)
    assert asked.result() == Generated("A title", entry(2, CallOutcome.DONE))
    partly = replace(USE, is_estimate=True)
    assert asking.billed == [(entry(1, CallOutcome.FAILED, partly), ANN.id)]


async def test_no_attempt_begins_that_could_not_end_in_time() -> None:
    hinted = ModelError(ErrorKind.RATE_LIMIT, "later", is_retryable=True, retry_after_s=31)

    def play(_: ModelRequest) -> Iterable[ModelEvent]:
        raise hinted

    asking = Asking(play)
    with pytest.raises(ModelError):
        await asking.side_calls.ask(QUESTION)
    assert len(asking.model.requests) == 1


async def test_a_model_that_says_nothing_is_given_up_at_the_limit() -> None:
    asking = Asking(stuck)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = group.create_task(_failure(asking))
        assert await asking.clock.until_sleeping() == 30
        asking.clock.advance(30)
    assert asked.result().kind is ErrorKind.STREAM_SILENCE_TIMEOUT
    use = ModelUse(
        "own",
        5,
        2,
        cost_micros=7,
        model_runtime_ms=30_000,
        provider="p",
        price=OWN.price,
        is_estimate=True,
    )
    assert asking.billed == [(entry(1, CallOutcome.FAILED, use), ANN.id)]


async def test_a_generation_that_is_cancelled_is_billed_as_aborted() -> None:
    asking = Asking(stuck)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        asked = group.create_task(asking.side_calls.ask(QUESTION))
        await asking.clock.until_sleeping()
        asked.cancel()
    partly = replace(USE, is_estimate=True)
    assert asking.billed == [(entry(1, CallOutcome.ABORTED, partly), ANN.id)]


async def _failure(asking: Asking) -> ModelError:
    with pytest.raises(ModelError) as failed:
        await asking.side_calls.ask(QUESTION)
    return failed.value


OTHER = ModelProfile("other", provider_id="q", is_fallback=True)
QUOTA = ModelError(ErrorKind.USAGE_LIMIT, "over quota", is_retryable=False)


def down_unless_other(request: ModelRequest) -> Iterable[ModelEvent]:
    if request.model != "other":
        raise QUOTA
    return (TextDelta("A title"), USED, Finished())


@pytest.mark.parametrize("purpose", [CallPurpose.TITLE, CallPurpose.ADVISOR])
async def test_the_fallback_model_answers_when_the_provider_is_down_and_the_ledger_says_so(
    purpose: CallPurpose,
) -> None:
    asking = Asking(down_unless_other, fallback=OTHER)
    generated = await asking.side_calls.ask(replace(QUESTION, purpose=purpose))
    assert generated is not None
    assert [request.model for request in asking.model.requests] == ["own", "other"]
    use = generated.entry.bill.use
    assert (generated.text, use.model_id, use.is_fallback) == ("A title", "other", True)
    assert generated.entry.bill.purpose is purpose


@pytest.mark.parametrize(
    ("question", "fallback"),
    [
        (QUESTION, None),
        (replace(QUESTION, has_fallback=False), OTHER),
        (QUESTION, replace(DEMO, is_fallback=True)),
        (QUESTION, replace(OTHER, context_limit_tokens=1)),
    ],
    ids=["none is set", "not wanted", "the demo", "too small a window"],
)
async def test_a_fallback_model_that_cannot_answer_is_not_asked(
    question: SideCallRequest, fallback: ModelProfile | None
) -> None:
    asking = Asking(down_unless_other, fallback=fallback)
    with pytest.raises(ModelError):
        await asking.side_calls.ask(question)
    assert len(asking.model.requests) == 1
