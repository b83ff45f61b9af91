"""Model calls that fail, are slow, or fall silent."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from chatd.chats.domain.chat import Retry, Status
from chatd.chats.domain.commands import FailTurn, RecordRetry
from chatd.content.domain.messages import ErrorKind, FinishReason, TurnError
from chatd.models.domain.language_model import (
    Finished,
    ModelError,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
)
from chatd.turns.domain.retries import Failed, GiveUp, RetryIn, RetryPolicy, after_failure
from chatd.turns.engine.dependencies import TurnLimits
from parley.clock.fake import EPOCH
from support.chatd.turns.journaling_tools import Crash
from support.chatd.turns.turn_stage import CHAT, Stage, live_parts

BUSY = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True, provider="anthropic")
POLICY = RetryPolicy()
PATIENT = TurnLimits(retries=RetryPolicy(outage_max_s=7200.0))


class Failing:
    """Fails some times, then answers."""

    def __init__(self, *errors: ModelError) -> None:
        self._errors = list(errors)

    def __call__(self, _: ModelRequest) -> Iterable[ModelEvent]:
        if self._errors:
            raise self._errors.pop(0)
        return (TextDelta("at last"), Finished())


async def test_a_failed_call_is_told_and_tried_again() -> None:
    stage = Stage(Failing(BUSY, BUSY))
    stage.send()
    async with stage.running():
        for delay_s in (1, 2):
            assert await stage.clock.until_sleeping() == delay_s
            stage.clock.advance(delay_s)
    error = TurnError("busy", ErrorKind.OVERLOADED, provider="anthropic", is_retryable=True)
    told = [each.retry for each in stage.commits.commands if isinstance(each, RecordRetry)]
    assert told == [
        Retry(1, 1000, EPOCH + timedelta(seconds=1), error, outage_since=EPOCH),
        Retry(2, 2000, EPOCH + timedelta(seconds=3), error, outage_since=EPOCH),
    ]
    assert stage.texts[-1] == ("assistant", "at last")
    assert (stage.status, stage.state.retry) == (Status.WAITING, None)


async def test_an_error_that_will_not_pass_ends_the_turn() -> None:
    stage = Stage(Failing(ModelError(ErrorKind.AUTH, "no key", is_retryable=False)))
    await stage.ask()
    assert (stage.status, stage.state.last_error) == (
        Status.ERROR,
        TurnError("no key", ErrorKind.AUTH, attempts=1),
    )


async def test_no_attempt_begins_after_the_last_one() -> None:
    stage = Stage(Failing(*[BUSY] * 30), limits=PATIENT)
    stage.send()
    async with stage.running():
        for attempt in range(1, 25):
            assert await stage.clock.until_sleeping() == min(2 ** (attempt - 1), 60)
            stage.clock.advance(60)
    assert len(stage.model.requests) == 25
    assert stage.state.last_error == replace(BUSY.turn_error, attempts=25)


def held_back(wait_s: float) -> ModelError:
    return ModelError(
        ErrorKind.OVERLOADED,
        "held back",
        is_retryable=True,
        retry_after_s=wait_s,
        provider="anthropic",
        is_breaker_open=True,
    )


async def test_calls_that_were_not_made_are_told_and_use_up_no_attempt() -> None:
    stage = Stage(Failing(BUSY, *[held_back(7)] * 40, BUSY))
    stage.send()
    async with stage.running():
        for wait_s in (1, *[7] * 40, 2):
            assert await stage.clock.until_sleeping() == wait_s
            stage.clock.advance(wait_s)
    told = [each.retry for each in stage.commits.commands if isinstance(each, RecordRetry)]
    since = EPOCH + timedelta(seconds=1)
    assert [(each.attempt, each.held_back_since) for each in told] == [
        (1, None),
        *[(2, since)] * 40,
        (2, None),
    ]
    assert [request.attempt for request in stage.model.requests] == [1, *[2] * 41, 3]
    assert (stage.status, stage.texts[-1]) == (Status.WAITING, ("assistant", "at last"))


async def test_the_last_attempt_waits_like_the_others_while_its_call_is_held_back() -> None:
    stage = Stage(Failing(*[BUSY] * 24, held_back(5), BUSY), limits=PATIENT)
    stage.send()
    async with stage.running():
        for _ in range(25):
            stage.clock.advance(await stage.clock.until_sleeping())
    assert len(stage.model.requests) == 26
    assert stage.state.last_error == replace(BUSY.turn_error, attempts=25)


async def test_an_outage_of_ten_minutes_ends_the_turn_also_while_its_call_is_held_back() -> None:
    stage = Stage(Failing(BUSY, *[held_back(110)] * 10))
    stage.send()
    async with stage.running():
        for wait_s in (1, *[110] * 5, 49):
            assert await stage.clock.until_sleeping() == wait_s
            stage.clock.advance(wait_s)
    assert stage.clock.now() == EPOCH + timedelta(minutes=10)
    assert stage.state.last_error is not None
    assert stage.state.last_error.message == (
        "anthropic failed for 10 minutes. Wait a while, then send the message again, or choose "
        "another model."
    )


async def test_attempts_of_dead_owners_count() -> None:
    stage = Stage(Failing())
    stage.send()
    stage.chats.chats[CHAT].state = replace(stage.state, generation_attempt=25)
    await stage.take_over()
    assert stage.model.requests == []
    assert stage.state.last_error is not None
    assert stage.state.last_error.kind is ErrorKind.CRASH_LOOP


async def test_an_heir_waits_for_the_rest_of_a_retry() -> None:
    stage = Stage(Failing(BUSY))
    stage.send()
    stage.commits.dies_after = 0
    with pytest.raises(Crash):
        await stage.run()
    stage.clock.advance(0.25)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(stage.take_over())
        assert await stage.clock.until_sleeping() == 0.75
        stage.clock.advance(0.75)
    assert stage.texts[-1] == ("assistant", "at last")


def test_the_hint_of_a_provider_is_a_floor_and_jitter_comes_on_top() -> None:
    def asked_to_wait(hint_s: float, attempt: int) -> Failed:
        error = ModelError(ErrorKind.RATE_LIMIT, "slow", is_retryable=True, retry_after_s=hint_s)
        return Failed(error, attempt)

    assert after_failure(asked_to_wait(30, 1), 0.0, POLICY) == RetryIn(30)
    assert after_failure(asked_to_wait(0.5, 3), 0.0, POLICY) == RetryIn(4)
    assert after_failure(asked_to_wait(0.5, 3), 0.5, POLICY) == RetryIn(6)
    assert after_failure(asked_to_wait(30, 3), 0.5, POLICY) == RetryIn(32)
    assert after_failure(asked_to_wait(30, 9), 0.5, POLICY) == RetryIn(90)
    assert after_failure(asked_to_wait(600, 1), 0.0, POLICY) == RetryIn(600)
    too_long = after_failure(asked_to_wait(601, 1), 0.0, POLICY)
    assert isinstance(too_long, GiveUp)
    assert too_long.error.kind is ErrorKind.RATE_LIMIT


@pytest.mark.parametrize("hint_s", [0.5, 7, 60, 600])
def test_chats_that_are_told_the_same_moment_come_back_over_half_a_minute(hint_s: float) -> None:
    error = ModelError(ErrorKind.RATE_LIMIT, "slow", is_retryable=True, retry_after_s=hint_s)
    decided = [after_failure(Failed(error, 1, 200), chat / 200, POLICY) for chat in range(200)]
    delays_s = sorted(each.delay_s for each in decided if isinstance(each, RetryIn))
    assert len(delays_s) == 200
    assert delays_s[0] >= hint_s
    assert delays_s[-1] - delays_s[0] >= 30
    assert max(sum(s <= d < s + 1 for d in delays_s) for s in delays_s) <= 10


def test_a_chat_that_is_alone_comes_back_nearly_when_it_was_told() -> None:
    error = ModelError(ErrorKind.RATE_LIMIT, "slow", is_retryable=True, retry_after_s=7)
    assert after_failure(Failed(error, 1), 1.0, POLICY) == RetryIn(8)


async def test_a_hint_of_more_than_ten_minutes_ends_the_turn() -> None:
    error = ModelError(ErrorKind.OVERLOADED, "busy", is_retryable=True, retry_after_s=3600)
    stage = Stage(Failing(error))
    await stage.ask()
    assert stage.state.last_error is not None
    assert stage.state.last_error.kind is ErrorKind.RATE_LIMIT


class Hanging:
    """Says one word when it may, and then nothing more; the second time it answers."""

    def __init__(self) -> None:
        self.may_begin = asyncio.Event()
        self._calls = 0

    async def __call__(self, _: ModelRequest) -> AsyncIterator[ModelEvent]:
        self._calls += 1
        if self._calls == 1:
            await self.may_begin.wait()
            yield TextDelta("wor")
            await asyncio.Event().wait()
        yield TextDelta("word")
        yield Finished()


def retried_kind(stage: Stage) -> ErrorKind:
    (retry,) = [each.retry for each in stage.commits.commands if isinstance(each, RecordRetry)]
    return retry.error.kind


async def test_a_model_that_does_not_begin_within_a_minute_is_asked_again() -> None:
    stage = Stage(Hanging())
    stage.send()
    async with stage.running():
        for wait_s in (60, 1):
            assert await stage.clock.until_sleeping() == wait_s
            stage.clock.advance(wait_s)
    assert retried_kind(stage) is ErrorKind.STARTUP_TIMEOUT
    assert stage.texts[-1] == ("assistant", "word")


async def test_a_model_that_falls_silent_for_ten_minutes_is_asked_again() -> None:
    model = Hanging()
    stage = Stage(model)
    stage.send()
    with stage.watch() as watcher:
        async with stage.running():
            assert await stage.clock.until_sleeping() == 60
            stage.clock.advance(59)
            model.may_begin.set()
            await live_parts(watcher, 1)
            # The rest of the first alarm, then ten minutes from the word, then the retry.
            for wait_s in (1, 599, 1):
                assert await stage.clock.until_sleeping() == wait_s
                stage.clock.advance(wait_s)
    assert retried_kind(stage) is ErrorKind.STREAM_SILENCE_TIMEOUT
    assert stage.texts[-1] == ("assistant", "word")


async def test_a_stream_that_ends_without_its_last_event_is_asked_again() -> None:
    plays = iter(((TextDelta("cut"),), (TextDelta("whole"), Finished())))
    stage = Stage(lambda _: next(plays))
    stage.send()
    async with stage.running():
        await stage.clock.until_sleeping()
        stage.clock.advance(1)
    assert retried_kind(stage) is ErrorKind.TIMEOUT
    assert stage.texts[-1] == ("assistant", "whole")


async def test_a_cancellation_that_nobody_asked_for_is_a_lost_connection() -> None:
    answers = iter((asyncio.CancelledError(), None))

    def play(_: ModelRequest) -> Iterable[ModelEvent]:
        if (error := next(answers)) is not None:
            raise error
        return (TextDelta("whole"), Finished())

    stage = Stage(play)
    stage.send()
    async with stage.running():
        await stage.clock.until_sleeping()
        stage.clock.advance(1)
    assert retried_kind(stage) is ErrorKind.TIMEOUT
    assert stage.texts[-1] == ("assistant", "whole")


async def test_a_refusal_without_a_word_is_an_error_and_one_with_words_is_an_answer() -> None:
    refused = Finished(FinishReason.CONTENT_FILTER, "violence")
    silent = Stage(lambda _: (ReasoningDelta("hm"), refused))
    await silent.ask()
    (failed,) = silent.commits.commands
    assert isinstance(failed, FailTurn)
    assert (failed.error.kind, failed.error.detail) == (ErrorKind.CONTENT_FILTER, "violence")
    spoken = Stage(lambda _: (TextDelta("I would rather not"), refused))
    await spoken.ask()
    assert spoken.texts[-1] == ("assistant", "I would rather not")
