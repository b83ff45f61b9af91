import asyncio
from collections.abc import AsyncIterator, Generator
from typing import Any

import grpc
import pytest

from parley.identity import RefusalReason, Role, ServiceName, User, UserId
from parley.rpc import LIMITS, Address, Problem
from parley.rpc.clock_correction import CorrectedAnswer, CorrectedStream, Credential
from parley.rpc.problem import trailers

ADA = User(UserId("ada"), Role.MEMBER)
NOW_S = 1_800_000_000
ADDRESS = Address.parse("unix:/run/chatd.sock")


class WrittenTokens:
    """Tokens that say in plain words what they were asked for."""

    def call_token(self, audience: ServiceName, user: User | None = None, offset_s: int = 0) -> str:
        return f"{audience}/{user and user.id}/{offset_s}"

    def offset_to(self, time_s: int) -> int:
        return time_s - NOW_S


def failure(
    reason: str, status: grpc.StatusCode = grpc.StatusCode.UNAUTHENTICATED, **metadata: str
) -> grpc.aio.AioRpcError:
    told = trailers(Problem(status, reason, "no", metadata), domain="test")
    return grpc.aio.AioRpcError(status, grpc.aio.Metadata(), grpc.aio.Metadata(*told))


def untimely(offset_s: int) -> grpc.aio.AioRpcError:
    reason = RefusalReason.TOKEN_EXPIRED if offset_s > 0 else RefusalReason.TOKEN_NOT_YET_VALID
    return failure(reason, time=str(NOW_S + offset_s))


@pytest.fixture
def credential() -> Credential:
    return Credential(WrittenTokens(), ServiceName.CHATD, ADDRESS)


def offset_of(credential: Credential) -> int:
    return int(credential.authorization(None).rpartition("/")[2])


def test_tokens_are_by_ones_own_clock_at_first(credential: Credential) -> None:
    assert credential.authorization(ADA) == "Bearer chatd/ada/0"


@pytest.mark.parametrize("offset_s", [3600, -3600, 6, 7200, -7200])
def test_an_offset_is_learned_from_a_refusal(credential: Credential, offset_s: int) -> None:
    assert credential.learn(untimely(offset_s))
    assert credential.authorization(ADA) == f"Bearer chatd/ada/{offset_s}"


def test_a_refusal_by_an_equal_clock_allows_another_token(credential: Credential) -> None:
    assert credential.learn(untimely(0))
    assert offset_of(credential) == 0


@pytest.mark.parametrize(
    "refusal",
    [
        untimely(LIMITS.clock_offset_s_max + 1),
        untimely(-LIMITS.clock_offset_s_max - 1),
        failure(RefusalReason.TOKEN_EXPIRED),
        failure(RefusalReason.TOKEN_EXPIRED, time="soon"),
        failure(RefusalReason.TOKEN_EXPIRED, time="9" * 400),
    ],
    ids=["too_far_ahead", "too_far_behind", "no_time", "no_number", "a_huge_number"],
)
def test_what_is_no_believable_time_makes_it_forget(
    credential: Credential, refusal: grpc.aio.AioRpcError
) -> None:
    credential.learn(untimely(3600))

    assert not credential.learn(refusal)
    assert offset_of(credential) == 0


def test_an_offset_that_became_wrong_is_replaced(credential: Credential) -> None:
    credential.learn(untimely(3600))
    credential.learn(untimely(-60))
    assert offset_of(credential) == -60


@pytest.mark.parametrize(
    "refusal",
    [
        failure(RefusalReason.TOKEN_SIGNATURE, time=str(NOW_S)),
        failure("TOKEN_EXPIRED", grpc.StatusCode.INTERNAL, time=str(NOW_S)),
        grpc.aio.AioRpcError(
            grpc.StatusCode.UNAUTHENTICATED, grpc.aio.Metadata(), grpc.aio.Metadata()
        ),
    ],
    ids=["another_reason", "another_status", "no_reason"],
)
def test_other_failures_teach_nothing(
    credential: Credential, refusal: grpc.aio.AioRpcError
) -> None:
    credential.learn(untimely(3600))

    assert not credential.learn(refusal)
    assert offset_of(credential) == 3600


def test_another_clock_is_told_of_once(
    credential: Credential, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(3):
        credential.learn(untimely(-3600))
    assert [record.getMessage() for record in caplog.records] == [
        "the clock of chatd at unix:/run/chatd.sock is -3600 s from this one; set the wrong one"
    ]


class Answer:
    """A call that ended."""

    def __init__(self, outcome: str | grpc.aio.AioRpcError) -> None:
        self._outcome = outcome

    def __await__(self) -> Generator[Any, None, str]:
        yield from asyncio.sleep(0).__await__()  # noqa: TID251 (only lets others run)
        if isinstance(self._outcome, str):
            return self._outcome
        raise self._outcome

    def peer(self) -> str:
        return f"peer of {self._outcome}"


class Stream:
    """A stream that brings words, and then perhaps a failure."""

    def __init__(self, *outcomes: str | grpc.aio.AioRpcError) -> None:
        self._messages = self._sent(outcomes)

    async def _sent(self, outcomes: tuple[str | grpc.aio.AioRpcError, ...]) -> AsyncIterator[str]:
        for outcome in outcomes:
            if not isinstance(outcome, str):
                raise outcome
            yield outcome

    def __aiter__(self) -> AsyncIterator[str]:
        return self._messages

    async def read(self) -> object:
        return await anext(self._messages, grpc.aio.EOF)


class Repetitions:
    """What calls are repeated with, and for which refusals they were asked for."""

    def __init__(self, *calls: Any) -> None:
        self._calls = list(calls)
        self.asked: list[tuple[grpc.aio.AioRpcError, Any]] = []

    def __call__(self, error: grpc.aio.AioRpcError, refused: Any) -> Any:
        self.asked.append((error, refused))
        return self._calls.pop(0) if self._calls else None


async def test_an_answer_is_not_asked_for_again() -> None:
    again = Repetitions(Answer("never"))
    assert await CorrectedAnswer(Answer("yes"), again) == "yes"
    assert again.asked == []


async def test_a_refused_call_is_repeated_once_and_not_twice() -> None:
    first, second = Answer(untimely(60)), untimely(3600)
    again = Repetitions(Answer(second), Answer("too late"))

    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await CorrectedAnswer(first, again)
    assert raised.value is second
    assert [refused for _, refused in again.asked] == [first]


async def test_without_a_repetition_the_refusal_stays() -> None:
    refusal = failure("SCOPE_MISSING")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await CorrectedAnswer(Answer(refusal), Repetitions())
    assert raised.value is refusal


async def test_all_who_await_one_call_share_its_repetition() -> None:
    again = Repetitions(Answer("yes"), Answer("another"))
    call = CorrectedAnswer(Answer(untimely(60)), again)

    async def awaited() -> str:
        answer: str = await call
        return answer

    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        waiting = [tasks.create_task(awaited()) for _ in range(3)]
    assert [task.result() for task in waiting] == ["yes"] * 3
    assert await call == "yes"
    assert len(again.asked) == 1


async def test_everything_else_is_asked_of_the_call_that_counts() -> None:
    call = CorrectedAnswer(Answer(untimely(60)), Repetitions(Answer("yes")))
    await call
    assert call.peer() == "peer of yes"


async def test_a_refused_stream_begins_again_once() -> None:
    again = Repetitions(Stream("a", "b"))
    stream = CorrectedStream(Stream(untimely(60)), again)

    assert [message async for message in stream] == ["a", "b"]
    assert len(again.asked) == 1


async def test_a_refused_stream_that_is_read_begins_again_too() -> None:
    stream = CorrectedStream(Stream(untimely(60)), Repetitions(Stream("a")))
    assert [await stream.read(), await stream.read()] == ["a", grpc.aio.EOF]


async def test_a_stream_that_has_begun_does_not_begin_again() -> None:
    refusal = untimely(60)
    again = Repetitions(Stream("never"))
    stream = CorrectedStream(Stream("a", refusal), again)

    assert await anext(stream) == "a"
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await anext(stream)
    assert raised.value is refusal
    assert again.asked == []


async def test_a_stream_is_refused_twice_at_most() -> None:
    second = untimely(60)
    again = Repetitions(Stream(second), Stream("too late"))
    stream = CorrectedStream(Stream(untimely(60)), again)

    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await anext(stream)
    assert raised.value is second
    assert len(again.asked) == 1
