"""Calls over HTTP: connections for all providers, bytes in, events out, one kind of error.

The path of an answer is short on purpose: each piece of the body is framed, decoded and given on in
the callback that receives it, or with others on the next beat if the process is late. The task that
asked sleeps until the answer is over.
"""

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
    ProviderFailed,
    Wire,
)
from parley.clock import Clock
from parley.http import Connections, FlushTimer, HttpError, HttpOptions, Response

BODY_BYTES_MAX = 256 * 1024 * 1024
HEARTBEAT_S = 1.0
# An answer that is complete waits so long for the body to end: a connection is worth keeping.
REUSE_S = 0.2

_HEARTBEAT = Heartbeat()
_REQUEST_SENT = RequestSent()
_OPENINGS_OF_DOCUMENTS = (b"{", b"[", b"<")
# What people see of an answer: they wait for the first of it.
_SHOWN = (TextDelta, ReasoningDelta, ToolInputDelta)


class Frames(Protocol):
    """Finds the events in the bytes of one body."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Give the data of the events that are complete now."""
        ...

    def end(self) -> Iterable[bytes]:
        """Give what is left once the body ended."""
        ...


class WatchedCall(Protocol):
    """Learns what comes of one call."""

    def took(self, event: ModelEvent) -> None:
        """Learn of an event before it is passed on."""
        ...


class WatchedCalls(Protocol):
    """Watches calls, as `TracedCalls` does."""

    def watching(
        self, request: ModelRequest, target: Target
    ) -> AbstractContextManager[WatchedCall]:
        """Watch a call for as long as the context lasts; an error that leaves it is its own."""
        ...


class UnwatchedCalls:
    """Watches nothing."""

    def watching(
        self, request: ModelRequest, target: Target
    ) -> AbstractContextManager["UnwatchedCalls"]:
        """Let the call be."""
        return nullcontext(self)

    def took(self, event: ModelEvent) -> None:
        """Let the event be."""


class HttpModels:
    """Streams the answers of models; opened and closed with the process.

    Args:
        clock: Time.
        options: How connections are made and kept.
        calls: Is told of all calls.
        flush_timer: When a process that is late reads what can wait.
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

    async def __aenter__(self) -> Self:
        """Begin to make connections."""
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
        """Ask a model and give what comes back to `on_event` where it arrives, `Finished` last.

        Who stops waiting closes the connection.

        Raises:
            ModelError: the call failed, at any place of the answer.
        """
        with self._calls.watching(request, target) as call:
            sent = wire.request(request, target)
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
    """The body of one answer, turned into events as it comes.

    Attributes:
        is_finished: Whether the last event was given.
        document: The beginning of a body that is a document, which no stream of events is.
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
        """Give the events that are complete now, or now and then a sign of life.

        Returns whether nothing more is wanted.

        Raises:
            ProviderFailed: the provider reports an error, or cannot be understood.
        """
        if self._is_unseen and self._is_document(chunk):
            self.document = chunk
            return True
        self._received_bytes += len(chunk)
        if self._received_bytes > BODY_BYTES_MAX:
            raise ProviderFailed(Failure(f"the answer has more than {BODY_BYTES_MAX} bytes"))
        found = self._frames.feed(chunk)
        if type(found) is list and len(found) == 1:
            # Nearly always so while a model writes, and there is nothing to join then.
            events = self._decoder.decode(found[0])
            if type(events) is list and len(events) == 1:
                return self._give(events[0])
        else:
            events = self._decoded(found)
        return self._give_joined(events)

    def can_wait(self) -> bool:
        """Return whether the next bytes can wait for a beat: something is shown already."""
        return self._is_shown

    def end(self) -> None:
        """Give what is left once the body ended.

        Raises:
            ProviderFailed: the answer was cut off, or its last event reports an error.
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
