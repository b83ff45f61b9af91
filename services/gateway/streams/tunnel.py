"""Calls that are tunnelled through a shared stream, or made directly without one.

A gRPC call costs both ends several times as much as a message of a stream, and sending a message is
the most frequent call. Only idempotent calls are tunnelled: when the stream fails, the call is made
again directly, with gRPC's own retries.
"""

import asyncio
import itertools
from collections.abc import Callable
from typing import Generic, TypeVar

import grpc
from google.protobuf.message import Message

from parley.api.chat.v1 import stream_service_pb2 as api
from parley.rpc import LIMITS, call_headers, refused_call

Asked = TypeVar("Asked", bound=Message)
Answered = TypeVar("Answered", bound=Message)

# Above this number of pending calls, or this size, calls are made directly.
CALLS_MAX = 1000
CALL_BYTES_MAX = 64 * 1024
# The process is unavailable or draining, or its clock is off: a direct call has gRPC's handling.
DIRECT_CALL_STATUSES = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.UNAUTHENTICATED)

_STATUS = {status.value[0]: status for status in grpc.StatusCode}


class LinkLost(Exception):
    """The stream to a process is not connected, or has ended."""


class CallTunnel:
    """The pending calls of one shared stream.

    Args:
        put: Sends a request over the stream.
        calls_max: How many may wait for responses.
    """

    def __init__(
        self,
        put: Callable[[api.ConnectRequest | api.TunnelledCall], None],
        calls_max: int = CALLS_MAX,
    ) -> None:
        self._put = put
        self._calls_max = calls_max
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[api.TunnelledAnswer]] = {}
        self._is_over = False

    async def call(
        self, method: str, request: bytes, headers: dict[str, str], timeout_s: float
    ) -> api.TunnelledAnswer:
        """Make a call and return its answer.

        Raises:
            LinkLost: The stream is over, or carries too many calls already.
            TimeoutError: There was no answer in time.
        """
        if self._is_over or len(self._waiting) >= self._calls_max:
            raise LinkLost
        call_id = next(self._ids)
        answer: asyncio.Future[api.TunnelledAnswer] = asyncio.get_running_loop().create_future()
        self._waiting[call_id] = answer
        self._put(
            api.TunnelledCall(
                call_id=call_id,
                method=method,
                headers=headers,
                timeout_ms=int(timeout_s * 1000),
                request=request,
            )
        )
        try:
            async with asyncio.timeout(timeout_s):
                return await answer
        except (TimeoutError, asyncio.CancelledError):
            self._put(api.ConnectRequest(abandon=api.CancelTunnelledCall(call_id=call_id)))
            raise
        finally:
            self._waiting.pop(call_id, None)

    def take(self, answer: api.TunnelledAnswer) -> None:
        """Pass an answer to the call that waits for it."""
        waiting = self._waiting.pop(answer.call_id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def close(self) -> None:
        """Fail all pending calls, because the stream has ended."""
        self._is_over = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(LinkLost())


class TunnelledMethod(Generic[Asked, Answered]):
    """One method of one process; called like that of a stub.

    Args:
        path: As "/package.Service/Method".
        direct_call: Makes the call without a stream; None for a method that waits for long, which
            would take the place of other calls. Without a stream it is refused then.
        channel: The channel to the process.
        tunnel: Returns the call tunnel to it, if its stream is connected.
        decode: Decodes the response.
        timeout_s: How long a response may take.
    """

    def __init__(
        self,
        path: str,
        direct_call: Callable[[Asked], "grpc.aio.UnaryUnaryCall[Asked, Answered]"] | None,
        channel: grpc.aio.Channel,
        tunnel: Callable[[], CallTunnel | None],
        decode: Callable[[bytes], Answered],
        timeout_s: float = LIMITS.unary_deadline_s,
    ) -> None:
        self._path = path
        self._direct_call = direct_call
        self._channel = channel
        self._tunnel = tunnel
        self._decode = decode
        self._timeout_s = timeout_s

    async def __call__(self, request: Asked) -> Answered:
        """Make the call.

        Raises:
            grpc.aio.AioRpcError: It was refused.
        """
        tunnel = self._tunnel()
        encoded = b"" if tunnel is None else request.SerializeToString()
        if tunnel is None or len(encoded) > CALL_BYTES_MAX:
            return await self._directly(request)
        headers = call_headers(self._channel)
        try:
            answer = await tunnel.call(self._path, encoded, headers, self._timeout_s)
        except LinkLost:
            return await self._directly(request)
        except TimeoutError:
            status = grpc.StatusCode.DEADLINE_EXCEEDED
            raise refused_call(status, "there was no answer in time") from None
        if not answer.status:
            return self._decode(answer.response)
        status = _STATUS.get(answer.status, grpc.StatusCode.UNKNOWN)
        if status in DIRECT_CALL_STATUSES:
            return await self._directly(request)
        raise refused_call(status, answer.message, answer.details)

    async def _directly(self, request: Asked) -> Answered:
        if self._direct_call is None:
            raise refused_call(grpc.StatusCode.UNAVAILABLE, "there is no stream to this process")
        return await self._direct_call(request)
