"""Model calls over HTTP: connections to all providers, decoding of answers, classified errors.

The path of an answer is short on purpose: each piece of the body is framed, decoded and passed on
in the callback that receives it, or with others at the next flush if the process is late. The
calling task sleeps until the answer is complete.
"""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Protocol, Self

from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    OnEvent,
    ReasoningDelta,
    RequestSent,
    TextDelta,
    ToolInputDelta,
)
from chatd.models.engine.target import Target
from chatd.providers.bedrock import EventStreamFrames
from chatd.providers.classifier import classify
from chatd.providers.http_failures import (
    failure_of_answer,
    failure_of_document,
    failure_of_error,
    without_key,
)
from chatd.providers.joining import joined_deltas
from chatd.providers.sse import ServerSentEvents
from chatd.providers.wire import (
    Decoder,
    Failure,
    Framing,
    HttpRequest,
    ProviderFailed,
    Wire,
)
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.http import Connections, FlushTimer, HttpError, HttpOptions, Response

BODY_BYTES_MAX = 256 * 1024 * 1024
HEARTBEAT_S = 1.0
# Sets of tools whose schemas were converted for a provider before, and are remembered in its form:
# 1024 schemas are, so that 8 sets of 128 are still there. Others are converted in a thread again.
OFFERS_MAX = 8
# How long to wait for the end of the body after a complete answer, to reuse the connection.
REUSE_S = 0.2

_HEARTBEAT = Heartbeat()
_REQUEST_SENT = RequestSent()
_OPENINGS_OF_DOCUMENTS = (b"{", b"[", b"<")
# Events that users see: they wait for the first of them.
_SHOWN = (TextDelta, ReasoningDelta, ToolInputDelta)


class Frames(Protocol):
    """Finds the events in the bytes of one body."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Return the data of the events that are complete now."""
        ...

    def end(self) -> Iterable[bytes]:
        """Return the remaining events once the body ended."""
        ...


class WatchedCall(Protocol):
    """Observes the events of one call."""

    def took(self, event: ModelEvent) -> None:
        """Observe an event before it is passed on."""
        ...


class WatchedCalls(Protocol):
    """Observes calls, as `TracedCalls` does."""

    def watching(
        self, request: ModelRequest, target: Target
    ) -> AbstractContextManager[WatchedCall]:
        """Observe a call for as long as the context lasts; an exception belongs to the call."""
        ...


class UnwatchedCalls:
    """Observes nothing."""

    def watching(
        self, request: ModelRequest, target: Target
    ) -> AbstractContextManager["UnwatchedCalls"]:
        """Do nothing."""
        return nullcontext(self)

    def took(self, event: ModelEvent) -> None:
        """Do nothing."""


class HttpModels:
    """Streams the answers of models; opened and closed with the process.

    Args:
        clock: Time.
        options: How connections are made and kept.
        calls: Observes all calls.
        flush_timer: When a process that is late reads deferrable data.
    """

    def __init__(
        self,
        clock: Clock,
        options: HttpOptions | None = None,
        calls: WatchedCalls | None = None,
        flush_timer: FlushTimer | None = None,
    ) -> None:
        self._clock = clock
        self._calls = calls or UnwatchedCalls()
        self._connections = Connections(options, flush_timer)
        self._offers: BoundedCache[int, bool] = BoundedCache(OFFERS_MAX)

    async def __aenter__(self) -> Self:
        """Start to make connections."""
        await self._connections.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close all connections."""
        await self._connections.__aexit__(kind, error, traceback)

    async def answer(
        self, wire: Wire, request: ModelRequest, target: Target, on_event: OnEvent
    ) -> None:
        """Call a model and pass its events to `on_event` as they arrive, `Finished` last.

        Cancelling the call closes the connection.

        Raises:
            ModelError: The call failed, before or during the answer.
        """
        with self._calls.watching(request, target) as call:
            sent = await self._request(wire, request, target)
            try:
                response = await self._connections.post(
                    sent.url, sent.headers, sent.body, lambda: on_event(_REQUEST_SENT)
                )
            except (HttpError, OSError) as error:
                raise self._judged(failure_of_error(error), target) from None
            body = _Body(_frames(sent.framing), wire.decoder(), self._clock, (call.took, on_event))
            try:
                await self._read(response, body)
            except ProviderFailed as failed:
                raise self._judged(failed.failure, target) from None
            except (HttpError, OSError) as error:
                raise self._judged(failure_of_error(error, is_begun=True), target) from None
            finally:
                response.close(REUSE_S if body.is_finished else 0.0)

    async def _request(self, wire: Wire, request: ModelRequest, target: Target) -> HttpRequest:
        """Return the HTTP request, from a thread if its set of tools is new.

        Clients and MCP servers write their schemas, and to convert many large ones takes long.
        """
        offer = hash((target.provider_type, *[spec.input_schema_json for spec in request.tools]))
        if not request.tools or self._offers.get(offer):
            return wire.request(request, target)
        sent = await asyncio.to_thread(wire.request, request, target)
        self._offers.put(offer, True)
        return sent

    async def _read(self, response: Response, body: "_Body") -> None:
        if not 200 <= response.status < 300:
            raise ProviderFailed(await failure_of_answer(response))
        await response.stream_to(body.on_bytes, body.can_wait)
        if body.document:
            raise ProviderFailed(await failure_of_document(response, body.document))
        if not body.is_finished:
            body.end()

    def _judged(self, failure: Failure, target: Target) -> ModelError:
        return classify(
            without_key(failure, target.api_key),
            provider_type=target.provider_type,
            provider_name=target.provider_name,
            now=self._clock.now(),
        )


class _Body:
    """The body of one answer, converted into events as it arrives.

    Attributes:
        is_finished: Whether the last event was passed on.
        document: The beginning of a body that is a document instead of an event stream.
    """

    def __init__(
        self, frames: Frames, decoder: Decoder, clock: Clock, takers: tuple[OnEvent, ...]
    ) -> None:
        self.is_finished = False
        self.document = b""
        self._frames = frames
        self._decoder = decoder
        self._clock = clock
        self._takers = takers
        self._is_shown = False
        self._is_unseen = True  # Until the first byte that is not blank.
        self._received_bytes = 0
        self._beat_s = float("-inf")

    def on_bytes(self, chunk: bytes) -> bool:
        """Pass on the events that are complete now, or periodically a heartbeat.

        Returns whether no more bytes are wanted.

        Raises:
            ProviderFailed: The provider reports an error, or its data cannot be decoded.
        """
        if self._is_unseen and self._is_document(chunk):
            self.document = chunk
            return True
        self._received_bytes += len(chunk)
        if self._received_bytes > BODY_BYTES_MAX:
            raise ProviderFailed(Failure(f"the answer has more than {BODY_BYTES_MAX} bytes"))
        found = self._frames.feed(chunk)
        if type(found) is list and len(found) == 1:
            # Nearly always so while a model generates, and there is nothing to merge then.
            events = self._decoder.decode(found[0])
            if type(events) is list and len(events) == 1:
                return self._give(events[0])
        else:
            events = self._decoded(found)
        return self._give_joined(events)

    def can_wait(self) -> bool:
        """Return whether the next bytes can wait for a flush: users see a part of the answer."""
        return self._is_shown

    def end(self) -> None:
        """Pass on the remaining events once the body ended.

        Raises:
            ProviderFailed: The answer was cut off, or its last event reports an error.
        """
        for event in (*self._decoded(self._frames.end()), *self._decoder.end()):
            self._give(event)

    def _is_document(self, chunk: bytes) -> bool:
        opening = chunk.lstrip()
        self._is_unseen = not opening
        return opening.startswith(_OPENINGS_OF_DOCUMENTS)

    def _give(self, event: ModelEvent) -> bool:
        for on_event in self._takers:
            on_event(event)
        if not self._is_shown:
            self._is_shown = isinstance(event, _SHOWN)
        self.is_finished = isinstance(event, Finished)
        return self.is_finished

    def _give_joined(self, events: Iterable[ModelEvent]) -> bool:
        is_silent = True
        for event in joined_deltas(events):
            is_silent = False
            if self._give(event):
                return True
        if is_silent and (now_s := self._clock.monotonic()) - self._beat_s >= HEARTBEAT_S:
            self._beat_s = now_s
            self._give(_HEARTBEAT)
        return False

    def _decoded(self, found: Iterable[bytes]) -> Iterator[ModelEvent]:
        for data in found:
            yield from self._decoder.decode(data)


def _frames(framing: Framing) -> Frames:
    return EventStreamFrames() if framing is Framing.AWS_EVENT_STREAM else ServerSentEvents()
