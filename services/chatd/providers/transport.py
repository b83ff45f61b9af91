"""Calls over HTTP: one session for all providers, bytes in, events out, one kind of error.

The path of an answer is short on purpose: each piece of the body that arrives is framed, decoded
and yielded in the task that asked for it. Nothing else runs beside it.
"""

import asyncio
import io
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from ssl import SSLContext
from types import TracebackType
from typing import Protocol, Self

import aiohttp
from yarl import URL

from chatd.domain.model import Finished, Heartbeat, ModelError, ModelEvent, ModelRequest
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
from chatd.providers.target import Target
from chatd.providers.wire import (
    Decoder,
    Failure,
    Framing,
    HttpRequest,
    ProviderFailed,
    Wire,
)
from parley.clock import Clock

BODY_BYTES_MAX = 256 * 1024 * 1024
HEARTBEAT_S = 1.0
# An answer that is complete waits so long for the body to end: a connection is worth keeping.
REUSE_S = 0.2
# Bodies beyond this are sent in pieces, so that other chats get their turn.
WHOLE_BODY_BYTES = 512 * 1024

_HEARTBEAT = Heartbeat()
_OPENINGS_OF_DOCUMENTS = (b"{", b"[", b"<")


class Frames(Protocol):
    """Finds the events in the bytes of one body."""

    def feed(self, chunk: bytes) -> Iterable[bytes]:
        """Give the data of the events that are complete now."""
        ...

    def end(self) -> Iterable[bytes]:
        """Give what is left once the body ended."""
        ...


@dataclass(frozen=True, slots=True)
class HttpOptions:
    """How connections are made and kept.

    Attributes:
        connect_s: How long it may take until a connection stands.
        idle_s: How long a connection is kept that nobody uses.
        uses_proxy_of_environment: Whether the process's proxy variables count.
        trust: Whom to trust; True for whom the machine trusts.
    """

    connect_s: float = 10.0
    idle_s: float = 30.0
    uses_proxy_of_environment: bool = False
    trust: SSLContext | bool = True


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
        calls: Is told of all calls. They run through one generator only, whoever looks on: each
            more would cost every delta as much as reading it does.
    """

    def __init__(
        self, clock: Clock, options: HttpOptions | None = None, calls: WatchedCalls | None = None
    ) -> None:
        self._clock = clock
        self._options = options or HttpOptions()
        self._calls = calls or UnwatchedCalls()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        """Open the pool of connections."""
        options = self._options
        self._session = aiohttp.ClientSession(
            # How many calls there are is limited by whoever makes them.
            connector=aiohttp.TCPConnector(
                limit=0, keepalive_timeout=options.idle_s, ssl=options.trust
            ),
            timeout=aiohttp.ClientTimeout(total=None, connect=options.connect_s),
            # A cookie of one user's call must not come along with another's.
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": "parley", "Accept-Encoding": "identity"},
            trust_env=options.uses_proxy_of_environment,
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def stream(
        self, wire: Wire, request: ModelRequest, target: Target
    ) -> AsyncGenerator[ModelEvent, None]:
        """Ask a model and yield what comes back, ending with `Finished`.

        Closing the generator closes the connection.

        Raises:
            ModelError: the call failed, at any place of the stream.
        """
        with self._calls.watching(request, target) as call:
            sent = wire.request(request, target)
            try:
                response = await self._post(sent)
            except (aiohttp.ClientError, OSError, ValueError) as error:
                raise self._judged(failure_of_error(error), target) from None
            try:
                if not 200 <= response.status < 300:
                    raise ProviderFailed(await failure_of_answer(response))
                body = _Body(_frames(sent.framing), wire.decoder(), self._clock)
                readany = response.content.readany
                while chunk := await readany():
                    if body.is_unseen and body.is_document(chunk):
                        raise ProviderFailed(await failure_of_document(response, chunk))
                    for event in body.take(chunk):
                        call.took(event)
                        if isinstance(event, Finished):
                            await _drain(response.content)
                            yield event
                            return
                        yield event
                for event in body.end():
                    call.took(event)
                    yield event
            except ProviderFailed as failed:
                raise self._judged(failed.failure, target) from None
            except (aiohttp.ClientError, OSError) as error:
                raise self._judged(failure_of_error(error, is_begun=True), target) from None
            finally:
                # Of no effect once the body was read to its end: the connection is in the pool.
                response.close()

    async def _post(self, sent: HttpRequest) -> aiohttp.ClientResponse:
        if self._session is None:
            raise RuntimeError("open the models first: async with HttpModels(...)")
        body = sent.body
        return await self._session.post(
            # As it is: a signature covers the very path that the wire format wrote.
            URL(sent.url, encoded=True),
            data=body if len(body) <= WHOLE_BODY_BYTES else io.BytesIO(body),
            headers=sent.headers,
            allow_redirects=False,
        )

    def _judged(self, failure: Failure, target: Target) -> ModelError:
        return classify(
            without_key(failure, target.api_key),
            provider_type=target.provider_type,
            provider_name=target.provider_name,
            now=self._clock.now(),
        )


class _Body:
    """The body of one answer, turned into events as it comes."""

    def __init__(self, frames: Frames, decoder: Decoder, clock: Clock) -> None:
        self.is_unseen = True  # Until the first byte that is not blank.
        self._frames = frames
        self._decoder = decoder
        self._clock = clock
        self._received_bytes = 0
        self._beat_s = float("-inf")

    def is_document(self, chunk: bytes) -> bool:
        """Return whether the body begins like a document, which no stream of events does."""
        opening = chunk.lstrip()
        self.is_unseen = not opening
        return opening.startswith(_OPENINGS_OF_DOCUMENTS)

    def take(self, chunk: bytes) -> Iterable[ModelEvent]:
        """Give the events that are complete now, or now and then a sign of life.

        Raises:
            ProviderFailed: the provider reports an error, or cannot be understood; also while the
                events that came before the error are iterated.
        """
        self._received_bytes += len(chunk)
        if self._received_bytes > BODY_BYTES_MAX:
            raise ProviderFailed(Failure(f"the answer has more than {BODY_BYTES_MAX} bytes"))
        found = self._frames.feed(chunk)
        if type(found) is list and len(found) == 1:
            # Nearly always so while a model writes, and there is nothing to join then.
            events = self._decoder.take(found[0])
            if type(events) is list and len(events) == 1:
                return events
        else:
            events = self._decoded(found)
        return self._joined(events)

    def end(self) -> Iterator[ModelEvent]:
        """Give what is left once the body ended.

        Raises:
            ProviderFailed: the answer was cut off, or its last event reports an error.
        """
        yield from self._decoded(self._frames.end())
        yield from self._decoder.end()

    def _joined(self, events: Iterable[ModelEvent]) -> Iterator[ModelEvent]:
        is_silent = True
        for event in joined_deltas(events):
            is_silent = False
            yield event
        if is_silent and (now_s := self._clock.monotonic()) - self._beat_s >= HEARTBEAT_S:
            self._beat_s = now_s
            yield _HEARTBEAT

    def _decoded(self, found: Iterable[bytes]) -> Iterator[ModelEvent]:
        for data in found:
            yield from self._decoder.take(data)


async def _drain(content: aiohttp.StreamReader) -> None:
    """Read the rest of a body, so that its connection can be used again."""
    try:
        async with asyncio.timeout(REUSE_S):
            while await content.readany():
                pass
    except (TimeoutError, aiohttp.ClientError, OSError):
        return


def _frames(framing: Framing) -> Frames:
    return EventStreamFrames() if framing is Framing.AWS_EVENT_STREAM else ServerSentEvents()
