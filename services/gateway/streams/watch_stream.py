"""Streams chatd's events about a workspace as SSE: one client, one call, no cursor."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import grpc
from starlette.types import Receive, Scope, Send

from gateway.http import sse
from gateway.http.authentication import Principal
from gateway.streams.event_source import Ending
from gateway.streams.event_stream import EventStream

M = TypeVar("M")

#: Creates the stream of a client with its final fields, for events of some types.
StreamFactory = Callable[[Principal, Mapping[str, str], frozenset[str]], EventStream]


async def opened(call: Any, over: M) -> tuple[Any, M]:
    """Return a call after its first response, and that response; `over` if there is none."""
    first = await call.read()
    return call, first if isinstance(first, type(over)) else over


class WatchStream:
    """The response to one client that watches a resource; a reconnect starts again.

    Args:
        stream: Writes events to the client.
        call: Streams responses until one has the field `closed`.
        first: The response that was already read.
        event_of: Returns the type and the JSON of a response; None for one without an event.
        about: Fields of all events.
    """

    def __init__(
        self,
        stream: EventStream,
        call: Any,
        first: M,
        event_of: Callable[[M], tuple[str, object] | None],
        about: Mapping[str, str],
    ) -> None:
        self._stream = stream
        self._call = call
        self._first: Any = first
        self._event_of: Callable[[Any], tuple[str, object] | None] = event_of
        self._about = about

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the client."""
        try:
            async with asyncio.TaskGroup() as tasks:
                reading = tasks.create_task(self._read())
                await self._stream(scope, receive, send)
                reading.cancel()
        finally:
            self._call.cancel()

    async def _read(self) -> None:
        """Pass all responses to the stream, which never blocks."""
        message: Any = self._first
        try:
            while isinstance(message, type(self._first)) and not message.HasField("closed"):
                if (event := self._event_of(message)) is not None:
                    self._tell(*event)
                message = await self._call.read()
        except grpc.aio.AioRpcError:
            # The client reconnects, and gets the error then.
            pass
        self._stream.end(Ending.GOING_AWAY)

    def _tell(self, kind: str, document: object) -> None:
        event = {"type": kind, **self._about, kind: document}
        self._stream.take(kind, sse.frame(kind, event))
