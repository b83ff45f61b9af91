import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.wrappers_pb2 import StringValue

from parley.rpc import Problem, Refusal, Violation, problem_of
from support.rpc.echo_service import Echo, ServeEcho, text

SECRET = "password=hunter2"


class ChatNotFound(Exception):
    """An error of the service's own."""


NOT_FOUND = Problem(
    grpc.StatusCode.NOT_FOUND,
    "CHAT_NOT_FOUND",
    "no such chat; list your chats",
    {"chat_id": "c-1"},
    retry_after_s=2.0,
    violations=(Violation("chat_id", "unknown"),),
)
ERRORS = {ChatNotFound: lambda error: NOT_FOUND}


def raising(error: BaseException) -> Echo:
    async def say(request: StringValue, context: Any) -> StringValue:
        raise error

    async def repeat(request: StringValue, context: Any) -> AsyncIterator[StringValue]:
        yield request
        raise error

    return Echo(say=say, repeat=repeat)


async def failure(call: Any) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value


async def test_a_known_error_arrives_as_its_problem(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo(raising(ChatNotFound()), errors=ERRORS) as served:
        error = await failure(served.echo.say(text("x")))
    assert problem_of(error) == NOT_FOUND
    assert error.details() == NOT_FOUND.message


async def test_a_stream_ends_with_the_problem_after_what_was_sent(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo(raising(ChatNotFound()), errors=ERRORS) as served:
        call = served.echo.repeat(text("x"))
        assert await call.read() == text("x")
        error = await failure(call.read())
    assert problem_of(error) == NOT_FOUND


async def test_a_refusal_needs_no_table(serve_echo: ServeEcho) -> None:
    async with asyncio.timeout(10), serve_echo(raising(Refusal(NOT_FOUND))) as served:
        error = await failure(served.echo.say(text("x")))
    assert problem_of(error) == NOT_FOUND


async def test_an_unknown_error_tells_its_trace_and_nothing_else(
    serve_echo: ServeEcho, caplog: pytest.LogCaptureFixture
) -> None:
    async with asyncio.timeout(10), serve_echo(raising(KeyError(SECRET))) as served:
        error = await failure(served.echo.say(text("x")))
        [span] = served.telemetry.spans()
    assert span.context is not None
    trace_id = f"{span.context.trace_id:032x}"
    assert problem_of(error) == Problem(
        grpc.StatusCode.INTERNAL,
        "INTERNAL",
        f"internal error; the operator finds it in the logs under trace {trace_id}",
        {"trace_id": trace_id},
    )
    assert SECRET not in repr(error)
    [record] = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], KeyError)
    assert trace_id in record.getMessage()


async def test_a_handler_that_aborts_by_itself_keeps_its_status(serve_echo: ServeEcho) -> None:
    async def abort(request: StringValue, context: Any) -> StringValue:
        await context.abort(grpc.StatusCode.OUT_OF_RANGE, "bad cursor")
        return request

    async with asyncio.timeout(10), serve_echo(Echo(say=abort)) as served:
        error = await failure(served.echo.say(text("x")))
    assert (error.code(), error.details()) == (grpc.StatusCode.OUT_OF_RANGE, "bad cursor")


class Leaving:
    """A handler that a client leaves while it waits, and what became of it."""

    def __init__(self) -> None:
        self.has_started = asyncio.Event()
        self.has_ended = asyncio.Event()
        self.error: BaseException | None = None

    async def say(self, request: StringValue, context: Any) -> StringValue:
        await self._wait()
        return request

    async def repeat(self, request: StringValue, context: Any) -> AsyncIterator[StringValue]:
        yield request
        await self._wait()

    async def _wait(self) -> None:
        self.has_started.set()
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.has_ended.set()


@pytest.mark.parametrize("kind", ["say", "repeat"])
async def test_a_client_that_leaves_cancels_its_handler(serve_echo: ServeEcho, kind: str) -> None:
    leaving = Leaving()
    servicer = Echo(say=leaving.say, repeat=leaving.repeat)
    async with asyncio.timeout(10), serve_echo(servicer, drain_s=5) as served:
        call = getattr(served.echo, kind)(text("x"))
        if kind == "repeat":
            await call.read()
        await leaving.has_started.wait()
        call.cancel()
        await leaving.has_ended.wait()
        await served.server.drain()
        shown = served.telemetry.telemetry.metrics_text()
    assert isinstance(leaving.error, asyncio.CancelledError)
    assert 'rpc_response_status_code="CANCELLED"} 1.0' in shown


async def test_a_deadline_that_passes_cancels_its_handler(serve_echo: ServeEcho) -> None:
    leaving = Leaving()
    async with asyncio.timeout(10), serve_echo(Echo(say=leaving.say), drain_s=5) as served:
        error = await failure(served.echo.say(text("x"), timeout=0.2))
        await leaving.has_ended.wait()
        await served.server.drain()
        shown = served.telemetry.telemetry.metrics_text()
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert isinstance(leaving.error, asyncio.CancelledError)
    assert 'rpc_response_status_code="DEADLINE_EXCEEDED"} 1.0' in shown
