"""What chatd tells of a workspace, as server-sent events: one client, one call, no cursor."""

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

#: Opens the stream of a client, about something, with events of some types.
StreamFactory = Callable[[Principal, Mapping[str, str], frozenset[str]], EventStream]


async def opened(call: Any, over: M) -> tuple[Any, M]:
    """Return a call whose first answer has come, and that answer; `over` if there is none."""
    first = await call.read()
    return call, first if isinstance(first, type(over)) else over


class WatchStream:
    """The response to one client that follows something; whoever comes back begins anew.

    Args:
        stream: Writes events to the client.
        call: Tells, one answer after another, until one has the field `closed`.
        first: The answer that was read already.
        event_of: Returns the kind and the document of an answer; None for what is no news.
        about: What all events say they are about.
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
        self._first = first
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
        """Have the stream take everything; it never makes anybody wait."""
        told: Any = self._first
        try:
            while isinstance(told, type(self._first)) and not told.HasField("closed"):  # type: ignore[attr-defined]
                if (event := self._event_of(told)) is not None:
                    self._tell(*event)
                told = await self._call.read()
        except grpc.aio.AioRpcError:
            # The client comes back, and is told then what is wrong.
            pass
        self._stream.end(Ending.GOING_AWAY)

    def _tell(self, kind: str, document: object) -> None:
        event = {"type": kind, **self._about, kind: document}
        self._stream.take(kind, sse.frame(kind, event))
