"""Calls tunnelled through another call's stream, served like direct calls.

They pass all steps around a method: trace, drain, identity, deadline, errors and metrics.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError

from parley.rpc.method import Incoming
from parley.rpc.problem import DETAILS_KEY


@dataclass(frozen=True, slots=True)
class TunnelledAnswer:
    """The answer to a tunnelled call.

    Attributes:
        status: The gRPC status.
        message: The text of a status that is not OK.
        details: The encoded `google.rpc.Status`, if there is one.
        response: The encoded message, if the status is OK.
    """

    status: grpc.StatusCode
    message: str = ""
    details: bytes = b""
    response: bytes = b""


class TunnelledMethods:
    """The methods of a server, for calls that are tunnelled through one of its streams."""

    def __init__(self) -> None:
        self._methods: Mapping[str, Incoming] = {}

    def know(self, methods: Mapping[str, Incoming]) -> None:
        """Set the methods to serve."""
        self._methods = methods

    async def answer(
        self,
        carrier: Any,
        method: str,
        headers: Mapping[str, str],
        timeout_s: float,
        request: bytes,
    ) -> TunnelledAnswer:
        """Serve one call.

        Args:
            carrier: The context of the stream it is tunnelled through; the peer is the same.
            method: As "/package.Service/Method".
            headers: Its metadata.
            timeout_s: How long the caller waits.
            request: The encoded message.
        """
        incoming = self._methods.get(method)
        handler = None if incoming is None else incoming(headers.items())
        if handler is None or handler.request_streaming or handler.response_streaming:
            return TunnelledAnswer(
                grpc.StatusCode.UNIMPLEMENTED, f"{method} is no method that a stream can carry"
            )
        context = _TunnelledContext(carrier, timeout_s)
        try:
            asked = handler.request_deserializer(request)
        except DecodeError:
            return TunnelledAnswer(grpc.StatusCode.INTERNAL, "the message cannot be decoded")
        try:
            async with asyncio.timeout(timeout_s):
                answer = await handler.unary_unary(asked, context)
        except grpc.aio.BaseError:
            # It ended with a refusal, or with an error of grpc that has no answer.
            return context.refusal
        except TimeoutError:
            return TunnelledAnswer(grpc.StatusCode.DEADLINE_EXCEEDED, "it took too long")
        return TunnelledAnswer(grpc.StatusCode.OK, response=handler.response_serializer(answer))


class _TunnelledContext:
    """The context of a tunnelled call, which has none of grpc."""

    __slots__ = ("_carrier", "_deadline_at", "refusal")

    def __init__(self, carrier: Any, timeout_s: float) -> None:
        self._carrier = carrier
        self._deadline_at = asyncio.get_running_loop().time() + timeout_s
        self.refusal = TunnelledAnswer(grpc.StatusCode.UNKNOWN)

    def time_remaining(self) -> float:
        """Return the seconds until the deadline."""
        return max(0.0, self._deadline_at - asyncio.get_running_loop().time())

    def auth_context(self) -> Any:
        """Return the authentication context of the stream's connection."""
        return self._carrier.auth_context()

    def code(self) -> grpc.StatusCode:
        """Return the status with which the call was aborted."""
        return self.refusal.status

    async def abort(
        self,
        code: grpc.StatusCode,
        details: str = "",
        trailing_metadata: Sequence[tuple[str, bytes]] = (),
    ) -> NoReturn:
        """Abort the call."""
        encoded = dict(trailing_metadata).get(DETAILS_KEY, b"")
        self.refusal = TunnelledAnswer(code, details, encoded)
        raise grpc.aio.AbortError
