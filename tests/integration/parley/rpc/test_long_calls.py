"""Calls that last and calls that do not: neither takes the place of the other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.protobuf.wrappers_pb2 import StringValue

from parley.rpc import LIMITS
from parley.rpc.long_calls import LongCalls
from support.rpc.echo_service import Echo, Served, ServeEcho

WAITING = 3 * LIMITS.streams_per_connection_max
WAIT_S = LIMITS.unary_deadline_s + 30.0


class Waiting:
    """A method that waits until it is told to answer, unless it is asked something at once."""

    def __init__(self) -> None:
        self.count = 0
        self.is_over = asyncio.Event()
        self._came = asyncio.Condition()

    async def say(self, request: StringValue, context: Any) -> StringValue:
        if request.value == "now":
            return StringValue(value="at once")
        self.count += 1
        async with self._came:
            self._came.notify_all()
        try:
            await self.is_over.wait()
        finally:
            self.count -= 1
        return StringValue(value="later")

    async def repeat(self, request: StringValue, context: Any) -> AsyncIterator[StringValue]:
        yield await self.say(request, context)

    async def until(self, count: int) -> None:
        async with self._came:
            await self._came.wait_for(lambda: self.count >= count)


@asynccontextmanager
async def served_waits(serve_echo: ServeEcho) -> AsyncIterator[tuple[Served, Waiting]]:
    waiting = Waiting()
    async with serve_echo(Echo(waiting.say, waiting.repeat)) as served:
        try:
            yield served, waiting
        finally:
            waiting.is_over.set()


async def test_waiting_calls_leave_room_for_ordinary_ones(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(60), served_waits(serve_echo) as (served, waiting):
        waits = [served.echo.say(StringValue(), timeout=WAIT_S) for _ in range(WAITING)]
        await waiting.until(WAITING)
        answer = await served.echo.say(StringValue(value="now"), timeout=20)
        assert answer.value == "at once"
        waiting.is_over.set()
        assert {(await each).value for each in waits} == {"later"}


async def test_open_streams_leave_room_for_ordinary_calls(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(60), served_waits(serve_echo) as (served, waiting):
        streams = [served.echo.repeat(StringValue()) for _ in range(WAITING)]
        await waiting.until(WAITING)
        answer = await served.echo.say(StringValue(value="now"), timeout=20)
        assert answer.value == "at once"
        for stream in streams:
            stream.cancel()


async def test_a_connection_is_used_again_when_its_calls_are_over(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(60), served_waits(serve_echo) as (served, _):
        opened: list[grpc.aio.Channel] = []

        def open_channel() -> grpc.aio.Channel:
            opened.append(grpc.aio.insecure_channel(served.server.address.target))
            return opened[-1]

        def bind(channel: grpc.aio.Channel) -> Any:
            untyped: Any = channel
            return untyped.unary_unary("/no.such.Service/Method")

        calls = LongCalls(open_channel, calls_max=2)
        for _ in range(3):
            running = [calls.start("method", bind, b"", timeout=WAIT_S) for _ in range(4)]
            assert len(opened) == 2
            for call in running:
                call.cancel()
                assert await call.code() is grpc.StatusCode.CANCELLED
        for channel in calls.release():
            await channel.close()
