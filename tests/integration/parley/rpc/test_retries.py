import asyncio
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from parley.rpc import LIMITS, Problem, Refusal
from support.rpc.echo_service import Echo, ServeEcho, text


class Failing:
    """A handler that refuses a number of times before it answers."""

    def __init__(self, status: grpc.StatusCode, times: int) -> None:
        self._problem = Problem(status, "AWAY", "come back")
        self._times = times
        self.calls = 0

    async def say(self, request: StringValue, context: Any) -> StringValue:
        self.calls += 1
        if self.calls <= self._times:
            raise Refusal(self._problem)
        return request


async def test_a_method_without_side_effects_is_repeated_while_unavailable(
    serve_echo: ServeEcho,
) -> None:
    failing = Failing(grpc.StatusCode.UNAVAILABLE, times=2)
    async with asyncio.timeout(20), serve_echo(Echo(say=failing.say)) as served:
        assert await served.echo.look(text("x")) == text("x")
    assert failing.calls == 3


async def test_repetition_ends(serve_echo: ServeEcho) -> None:
    failing = Failing(grpc.StatusCode.UNAVAILABLE, times=100)
    async with asyncio.timeout(20), serve_echo(Echo(say=failing.say)) as served:
        with pytest.raises(grpc.aio.AioRpcError):
            await served.echo.look(text("x"))
    assert failing.calls == LIMITS.retry_attempts_max


async def test_a_method_that_acts_is_not_repeated(serve_echo: ServeEcho) -> None:
    failing = Failing(grpc.StatusCode.UNAVAILABLE, times=1)
    async with asyncio.timeout(20), serve_echo(Echo(say=failing.say)) as served:
        with pytest.raises(grpc.aio.AioRpcError):
            await served.echo.say(text("x"))
    assert failing.calls == 1


async def test_other_failures_are_not_repeated(serve_echo: ServeEcho) -> None:
    failing = Failing(grpc.StatusCode.ABORTED, times=1)
    async with asyncio.timeout(20), serve_echo(Echo(say=failing.say)) as served:
        with pytest.raises(grpc.aio.AioRpcError):
            await served.echo.look(text("x"))
    assert failing.calls == 1
