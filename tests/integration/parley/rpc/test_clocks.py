"""Two processes whose clocks differ, over a real socket."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from parley.clock import FakeClock
from parley.clock.fake import EPOCH
from parley.identity import ServiceName
from parley.rpc import LIMITS, Address, acting_for, connect, current_caller, problem_of
from parley.telemetry import InMemoryTelemetry
from support.rpc.echo_service import (
    ECHO_SCOPE,
    MEMBER,
    Echo,
    EchoStub,
    Identities,
    Served,
    ServeEcho,
    make_identities,
    text,
)

HOUR_S = 3600.0
REQUESTS = re.compile(r'rpc_server_requests_total{.*rpc_response_status_code="(\w+)"} (\d+)')


@pytest.fixture
def callers_clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=[HOUR_S, -HOUR_S], ids=["server_ahead", "server_behind"])
def clock(request: pytest.FixtureRequest) -> FakeClock:
    """The server's clock, which is wrong."""
    return FakeClock(EPOCH + timedelta(seconds=request.param))


@pytest.fixture
def identities(tmp_path: Path, clock: FakeClock, callers_clock: FakeClock) -> Identities:
    return make_identities(tmp_path, clock=clock, callers_clock=callers_clock)


def statuses(served: Served) -> dict[str, int]:
    """Return how many calls the server has ended in which way."""
    shown = served.telemetry.telemetry.metrics_text()
    counts: dict[str, int] = {}
    for status, count in REQUESTS.findall(shown):
        counts[status] = counts.get(status, 0) + int(count)
    return counts


async def words(*values: str) -> AsyncIterator[StringValue]:
    for value in values:
        yield text(value)


async def test_a_call_works_although_the_clocks_differ(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        for number in range(5):
            assert await served.echo.say(text(f"{number}")) == text(f"{number}")
        # Only the first one had to learn the time, and nothing ran twice.
        assert statuses(served) == {"UNAUTHENTICATED": 1, "OK": 5}


async def test_calls_side_by_side_are_all_repeated(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        async with asyncio.TaskGroup() as tasks:
            for number in range(20):
                tasks.create_task(say(served.echo, f"{number}"))
        assert statuses(served)["OK"] == 20


async def say(echo: EchoStub, words: str) -> None:
    assert await echo.say(text(words)) == text(words)


async def test_a_repeated_call_is_made_for_the_same_user(serve_echo: ServeEcho) -> None:
    users: list[Any] = []

    async def note(request: StringValue, context: Any) -> StringValue:
        users.append(current_caller().user)
        return request

    async with asyncio.timeout(10), serve_echo(Echo(say=note)) as served:
        with acting_for(MEMBER):
            call = served.echo.say(text("x"))
        await call
    assert users == [MEMBER]


async def test_a_repeated_call_keeps_its_deadline(serve_echo: ServeEcho) -> None:
    seen: list[float] = []

    async def note(request: StringValue, context: Any) -> StringValue:
        seen.append(context.time_remaining())
        return request

    async with asyncio.timeout(10), serve_echo(Echo(say=note)) as served:
        await served.echo.say(text("x"), timeout=5)
    # grpc rounds a deadline up as it writes it down.
    assert 0 < seen[0] < 5.2


async def test_a_stream_opens_although_the_clocks_differ(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        assert [each async for each in served.echo.repeat(text("a b"))] == [text("a"), text("b")]
        assert statuses(served) == {"UNAUTHENTICATED": 1, "OK": 1}


async def test_a_stream_that_is_read_opens_too(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        call = served.echo.repeat(text("a"))
        assert [await call.read(), await call.read()] == [text("a"), grpc.aio.EOF]


async def test_a_call_that_sends_a_stream_is_refused_once_and_works_the_next_time(
    serve_echo: ServeEcho,
) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        with pytest.raises(grpc.aio.AioRpcError):
            await served.echo.join(words("a", "b"))
        assert await served.echo.join(words("a", "b")) == text("a b")
        assert [each async for each in served.echo.chat(words("a"))] == [text("a")]
        assert statuses(served) == {"UNAUTHENTICATED": 1, "OK": 2}


async def test_a_clock_that_is_set_right_is_learned_anew(
    serve_echo: ServeEcho, clock: FakeClock, callers_clock: FakeClock
) -> None:
    async with asyncio.timeout(10), serve_echo() as served:
        await served.echo.say(text("x"))
        gap_s = (clock.now() - callers_clock.now()).total_seconds()
        (callers_clock if gap_s > 0 else clock).advance(abs(gap_s))
        assert await served.echo.say(text("y")) == text("y")
        assert await served.echo.say(text("z")) == text("z")
        assert statuses(served) == {"UNAUTHENTICATED": 2, "OK": 3}


async def test_a_clock_further_off_than_is_believed_is_refused_after_one_attempt(
    serve_echo: ServeEcho, clock: FakeClock, callers_clock: FakeClock
) -> None:
    gap_s = (clock.now() - callers_clock.now()).total_seconds()
    (clock if gap_s > 0 else callers_clock).advance(LIMITS.clock_offset_s_max)
    async with asyncio.timeout(10), serve_echo() as served:
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await served.echo.say(text("x"))
        assert statuses(served) == {"UNAUTHENTICATED": 1}
    assert problem_of(raised.value).metadata == {"time": str(int(clock.now().timestamp()))}


class OneToken:
    """A token that was signed elsewhere."""

    def __init__(self, token: str) -> None:
        self._token = token

    def call_token(self, audience: ServiceName, user: Any = None, offset_s: int = 0) -> str:
        return self._token

    def offset_to(self, time_s: int) -> int:
        return 0


async def test_a_service_token_is_neither_too_early_nor_asked_twice_once_it_is_too_late(
    serve_echo: ServeEcho, identities: Identities, address: Address, clock: FakeClock
) -> None:
    token = identities.signer.service_token(
        "token-1", "nightly", MEMBER, (ECHO_SCOPE,), clock.now() + timedelta(seconds=60)
    )
    async with asyncio.timeout(10), serve_echo() as served:
        channel = connect(
            address,
            audience=ServiceName.CHATD,
            signer=OneToken(token),
            telemetry=InMemoryTelemetry("caller").telemetry,
        )
        async with channel:
            echo = EchoStub(channel)
            assert await echo.say(text("x")) == text("x")
            clock.advance(60)
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await echo.say(text("y"))
        assert statuses(served) == {"UNAUTHENTICATED": 1, "OK": 1}
    problem = problem_of(raised.value)
    assert (problem.reason, problem.metadata) == ("TOKEN_EXPIRED", {})
