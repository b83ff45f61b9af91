"""Holding back from a provider that cannot cope."""

import asyncio
from collections.abc import Coroutine, Iterable
from functools import partial
from typing import Any

import pytest

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    OnEvent,
    TextDelta,
)
from chatd.models.engine.target import Target
from chatd.providers.breaker import Breaker, BreakerPolicy, Breakers
from chatd.providers.guarded import GuardedModel, GuardedModels
from chatd.providers.wire import Decoder, HttpRequest, Wire
from parley.clock import FakeClock
from parley.settings import Secret
from support.chatd.providers.answers import answering, events_of

BUSY = ErrorKind.OVERLOADED


def opened(at_s: float = 0.0, jitter: float = 0.0) -> Breaker:
    breaker = Breaker()
    for _ in range(5):
        assert breaker.admit(at_s) is None
        breaker.failed(BUSY, at_s, jitter)
    return breaker


@pytest.mark.parametrize(
    "kind",
    [
        ErrorKind.OVERLOADED,
        ErrorKind.TIMEOUT,
        ErrorKind.STARTUP_TIMEOUT,
        ErrorKind.STREAM_SILENCE_TIMEOUT,
    ],
)
def test_a_row_of_failures_opens_it(kind: ErrorKind) -> None:
    breaker = Breaker()
    for _ in range(4):
        breaker.failed(kind, 0.0, 0.0)
    assert not breaker.is_open(0.0)
    breaker.failed(kind, 0.0, 0.0)
    assert breaker.is_open(0.0)
    assert breaker.admit(1.0) == 4.0


def test_an_answer_in_between_begins_the_row_anew() -> None:
    breaker = Breaker()
    for _ in range(10):
        breaker.failed(BUSY, 0.0, 0.0)
        breaker.failed(BUSY, 0.0, 0.0)
        breaker.succeeded()
    assert not breaker.is_open(0.0)


@pytest.mark.parametrize(
    "kind", [kind for kind in ErrorKind if "timeout" not in kind and kind != "overloaded"]
)
def test_other_failures_never_open_it(kind: ErrorKind) -> None:
    breaker = Breaker()
    for _ in range(100):
        breaker.failed(kind, 0.0, 0.0)
    assert not breaker.is_open(0.0)


def test_it_stays_open_longer_by_chance_and_each_time() -> None:
    assert opened(jitter=0.5).admit(0.0) == 7.5
    breaker, now_s, waits = opened(), 0.0, []
    for _ in range(6):
        wait_s = breaker.admit(now_s)
        assert wait_s is not None
        waits.append(wait_s)
        now_s += wait_s
        assert breaker.admit(now_s) is None
        breaker.failed(BUSY, now_s, 0.0)
    assert waits == [5, 10, 20, 40, 60, 60]


def test_one_call_is_let_through_to_see_and_the_others_wait_for_it() -> None:
    breaker = opened()
    assert breaker.admit(5.0) is None
    assert breaker.admit(6.0) == 29.0
    breaker.succeeded()
    assert [breaker.admit(6.0) for _ in range(3)] == [None] * 3
    breaker.failed(BUSY, 6.0, 0.0)
    assert not breaker.is_open(6.0)


@pytest.mark.parametrize("how", ["abandoned", "refused", "forgotten"])
def test_a_call_that_told_nothing_lets_the_next_one_see(how: str) -> None:
    breaker = opened()
    assert breaker.admit(5.0) is None
    match how:
        case "abandoned":
            breaker.abandoned()
        case "refused":
            breaker.failed(ErrorKind.RATE_LIMIT, 5.0, 0.0)
    now_s = 35.0 if how == "forgotten" else 5.0
    assert breaker.admit(now_s) is None
    assert breaker.admit(now_s) == 30.0


def test_calls_from_before_it_opened_do_not_keep_it_open_longer() -> None:
    breaker = opened()
    for _ in range(20):
        breaker.failed(BUSY, 4.0, 0.0)
    assert breaker.admit(5.0) is None


def test_one_chat_can_always_try_again_a_few_times() -> None:
    breaker = Breaker()
    waits = [breaker.admit(now_s, is_retry=True) for now_s in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5)]
    assert waits == [None, None, None, None, None, 4.5]
    assert breaker.admit(5.5) is None
    assert breaker.admit(10.0, is_retry=True) is None


def test_repetitions_are_at_most_a_tenth_of_the_calls_of_ten_seconds() -> None:
    breaker = Breaker()
    retries = 0
    for call in range(10_000):
        now_s = call / 100
        if breaker.admit(now_s, is_retry=call % 2 == 0) is None:
            retries += call % 2 == 0
        if call % 1000 == 999:
            assert retries <= 100
            retries = 0


def test_each_credential_has_its_own_and_the_oldest_are_forgotten() -> None:
    breakers = Breakers(BreakerPolicy(failures_max=1), kept_max=2)
    first = breakers.of("acme", "one")
    first.failed(BUSY, 0.0, 0.0)
    assert not breakers.of("acme", "two").is_open(0.0)
    assert breakers.of("acme", "one") is first
    breakers.of("other", "one")
    assert breakers.of("acme", "one") is first
    assert len({id(breakers.of(*key)) for key in (("acme", "one"), ("other", "one"))}) == 2


class NoWire:
    """Is handed on and never used."""

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        raise NotImplementedError

    def decoder(self) -> Decoder:
        raise NotImplementedError


Play = Iterable[ModelEvent | Exception]


class PlayedModels:
    """Plays one script after the other; a script that ends without its last event hangs."""

    def __init__(self, *plays: Play) -> None:
        self._plays = list(plays)
        self.is_closed = False

    async def answer(
        self, wire: Wire, request: ModelRequest, target: Target, on_event: OnEvent
    ) -> None:
        try:
            for event in self._plays.pop(0):
                if isinstance(event, Exception):
                    raise event
                on_event(event)
                if isinstance(event, Finished):
                    return
            await asyncio.Event().wait()
        finally:
            self.is_closed = True


TARGET = Target("acme", ProviderType.OPENAI, "Acme", "m", "", Secret("key"))
OVERLOAD = ModelError(BUSY, "busy", is_retryable=True)
GOOD: Play = (TextDelta("hi"), Finished())


def guarded(models: PlayedModels, breaker: Breaker, clock: FakeClock) -> GuardedModel:
    return GuardedModel(models, NoWire(), TARGET, breaker=breaker, clock=clock, jitter=lambda: 0.0)


async def ask(model: GuardedModel, attempt: int = 1) -> list[ModelEvent] | ModelError:
    try:
        return await events_of(model, ModelRequest("m", (), (), attempt=attempt))
    except ModelError as error:
        return error


async def test_an_open_breaker_is_an_error_that_says_when_to_come_back() -> None:
    clock, breaker = FakeClock(), Breaker()
    model = guarded(PlayedModels(*[(OVERLOAD,)] * 5, GOOD), breaker, clock)
    for _ in range(5):
        assert await ask(model) is OVERLOAD
    held_back = await ask(model)
    assert isinstance(held_back, ModelError)
    assert (
        held_back.kind,
        held_back.is_retryable,
        held_back.retry_after_s,
        held_back.provider,
        str(held_back),
    ) == (
        ErrorKind.OVERLOADED,
        True,
        5.0,
        "Acme",
        "Parley holds this call back, because too many calls to Acme failed just now.",
    )
    clock.advance(5)
    assert await ask(model) == list(GOOD)
    assert not breaker.is_open(5.0)


async def test_calls_with_one_credential_share_what_is_known_of_it() -> None:
    clock = FakeClock()
    models = PlayedModels((OVERLOAD,), GOOD)
    breakers = Breakers(BreakerPolicy(failures_max=1))
    guarded = GuardedModels(models, breakers=breakers, clock=clock, jitter=lambda: 0.0)
    assert await ask(guarded.of(NoWire(), TARGET, "one")) is OVERLOAD
    assert isinstance(await ask(guarded.of(NoWire(), TARGET, "one")), ModelError)
    assert await ask(guarded.of(NoWire(), TARGET, "two")) == list(GOOD)


async def test_repetitions_in_vain_beyond_the_budget_are_held_back() -> None:
    clock = FakeClock()
    limited = ModelError(ErrorKind.RATE_LIMIT, "slow down", is_retryable=True)
    model = guarded(PlayedModels(*[(limited,)] * 5, GOOD), Breaker(), clock)
    for _ in range(5):
        assert await ask(model, attempt=2) is limited
    held_back = await ask(model, attempt=2)
    assert isinstance(held_back, ModelError)
    assert held_back.retry_after_s == 10.0
    assert await ask(model) == list(GOOD)


async def test_repetitions_that_are_answered_do_not_keep_others_waiting() -> None:
    model = guarded(PlayedModels(*[GOOD] * 50), Breaker(), FakeClock())
    for _ in range(50):
        assert await ask(model, attempt=2) == list(GOOD)


@pytest.mark.parametrize(("waited_s", "is_open"), [(1, False), (60, True)])
async def test_a_call_given_up_without_a_word_counts_only_after_a_long_wait(
    waited_s: float, is_open: bool
) -> None:
    clock, breaker = FakeClock(), Breaker(BreakerPolicy(failures_max=1))
    models = PlayedModels((Heartbeat(),))
    model = guarded(models, breaker, clock)
    async with answering(partial(model.answer, ModelRequest("m", (), ()))) as following:
        assert await following() == Heartbeat()
        clock.advance(waited_s)
    assert models.is_closed
    assert breaker.is_open(clock.monotonic()) is is_open


async def test_the_first_word_closes_it_and_a_sign_of_life_does_not() -> None:
    clock, breaker = FakeClock(), opened(-10.0)
    models = PlayedModels((Heartbeat(), TextDelta("hi")))
    was_open: list[bool] = []
    model = guarded(models, breaker, clock)

    def ask(note: OnEvent) -> Coroutine[Any, Any, None]:
        def on_event(event: ModelEvent) -> None:
            was_open.append(breaker.is_open(0.0))
            note(event)

        return model.answer(ModelRequest("m", (), ()), on_event)

    async with answering(ask) as following:
        await following()
        await following()
    assert was_open == [True, False]
