"""Calls over a shared stream: answered, given up, or made by themselves."""

import asyncio
from collections.abc import Callable

import grpc
import pytest

from gateway.streams.tunnel import CALL_BYTES_MAX, CallTunnel, LinkLost, TunnelledMethod
from parley.api.chat.v1 import stream_service_pb2 as api
from parley.api.chat.v1.chat_service_pb2 import SendMessageRequest, SendMessageResponse
from parley.identity import ServiceName
from parley.rpc import Address, connect, problem_of
from parley.telemetry import InMemoryTelemetry

ASKED = SendMessageRequest(request_id="r", chat_id="c")
ANSWERED = SendMessageResponse(replayed=True)
DIRECT_CALL_STATUSES = SendMessageResponse()


class Line:
    """The stream, as far as a carrier sees it."""

    def __init__(self, calls_max: int = 10) -> None:
        self.tunnel = CallTunnel(self.put, calls_max)
        self.calls: list[api.TunnelledCall] = []
        self.abandoned: list[int] = []
        self.asked = asyncio.Event()

    def put(self, request: api.ConnectRequest | api.TunnelledCall) -> None:
        if isinstance(request, api.TunnelledCall):
            self.calls.append(request)
            self.asked.set()
        else:
            self.abandoned.append(request.abandon.call_id)

    def answer(self, status: grpc.StatusCode = grpc.StatusCode.OK) -> None:
        """Answer the last call."""
        response = b"" if status.value[0] else ANSWERED.SerializeToString()
        self.tunnel.take(
            api.TunnelledAnswer(
                call_id=self.calls[-1].call_id, status=status.value[0], response=response
            )
        )


class Method:
    """A method over that stream, and how often it was called without."""

    def __init__(self, tunnel: Callable[[], CallTunnel | None]) -> None:
        self.by_itself_count = 0
        channel = connect(
            Address.parse("unix:/run/chatd.sock"),
            audience=ServiceName.CHATD,
            signer=None,
            telemetry=InMemoryTelemetry("gateway").telemetry,
        )
        plain: Callable[..., grpc.aio.UnaryUnaryCall[SendMessageRequest, SendMessageResponse]]
        plain = self._direct_call  # type: ignore[assignment]
        self.call: TunnelledMethod[SendMessageRequest, SendMessageResponse] = TunnelledMethod(
            "/s/Send", plain, channel, tunnel, SendMessageResponse.FromString
        )

    async def _direct_call(self, request: SendMessageRequest) -> SendMessageResponse:
        self.by_itself_count += 1
        return DIRECT_CALL_STATUSES


async def refuse(line: Line) -> None:
    await line.asked.wait()
    line.answer(grpc.StatusCode.NOT_FOUND)


async def test_an_answer_reaches_whoever_asked() -> None:
    line = Line()
    method = Method(lambda: line.tunnel)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(method.call(ASKED))
        await line.asked.wait()
        line.answer()
    assert asking.result() == ANSWERED
    assert method.by_itself_count == 0
    assert [(call.method, call.request) for call in line.calls] == [
        ("/s/Send", ASKED.SerializeToString())
    ]
    assert line.abandoned == []


@pytest.mark.parametrize("status", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED])
async def test_what_another_try_may_help_is_made_by_itself(status: grpc.StatusCode) -> None:
    line = Line()
    method = Method(lambda: line.tunnel)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(method.call(ASKED))
        await line.asked.wait()
        line.answer(status)
    assert asking.result() == DIRECT_CALL_STATUSES
    assert method.by_itself_count == 1


async def test_a_refusal_is_raised_as_grpc_would() -> None:
    line = Line()
    method = Method(lambda: line.tunnel)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        tasks.create_task(refuse(line))
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await method.call(ASKED)
    assert problem_of(raised.value).status is grpc.StatusCode.NOT_FOUND
    assert method.by_itself_count == 0


async def test_a_stream_that_breaks_under_a_call_has_it_made_by_itself() -> None:
    line = Line()
    method = Method(lambda: line.tunnel)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(method.call(ASKED))
        await line.asked.wait()
        line.tunnel.close()
    assert asking.result() == DIRECT_CALL_STATUSES
    assert await method.call(ASKED) == DIRECT_CALL_STATUSES
    assert len(line.calls) == 1


async def test_without_a_stream_a_call_is_made_by_itself() -> None:
    method = Method(lambda: None)
    assert await method.call(ASKED) == DIRECT_CALL_STATUSES


async def test_a_large_message_is_sent_by_itself() -> None:
    line = Line()
    method = Method(lambda: line.tunnel)
    assert (
        await method.call(SendMessageRequest(chat_id="c" * CALL_BYTES_MAX)) == DIRECT_CALL_STATUSES
    )
    assert line.calls == []


async def test_who_gives_up_says_so() -> None:
    line = Line()
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(line.tunnel.call("/s/Send", b"", {}, 5.0))
        await line.asked.wait()
        asking.cancel()
    assert asking.cancelled()
    assert line.abandoned == [line.calls[0].call_id]
    line.answer()  # Too late, and nobody minds.


async def test_a_call_without_an_answer_ends_in_time() -> None:
    line = Line()
    with pytest.raises(TimeoutError):
        await line.tunnel.call("/s/Send", b"", {}, 0.01)
    assert line.abandoned == [line.calls[0].call_id]


async def test_a_stream_carries_only_so_many_calls_at_once() -> None:
    line = Line(calls_max=1)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(line.tunnel.call("/s/Send", b"", {}, 5.0))
        await line.asked.wait()
        with pytest.raises(LinkLost):
            await line.tunnel.call("/s/Send", b"", {}, 5.0)
        line.answer()
    assert first.result().status == 0
