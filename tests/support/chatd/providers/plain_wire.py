"""A wire format of no provider, and a way to ask with it: what every test of transports needs."""

import asyncio
import json
from collections.abc import Iterable

from chatd.content.domain.messages import ErrorKind
from chatd.models.domain.catalogue import ProviderType
from chatd.models.domain.language_model import (
    Finished,
    Heartbeat,
    ModelError,
    ModelEvent,
    ModelRequest,
    TextDelta,
)
from chatd.models.engine.target import Target
from chatd.providers.joining import joined_deltas
from chatd.providers.transport import HttpModels
from chatd.providers.wire import Failure, HttpRequest, ProviderFailed
from parley.settings import Secret
from support.chatd.providers.answers import answered
from support.net.model_server import Act, model_server

KEY = "key-that-nobody-may-see"
REQUEST = ModelRequest("m", (), ())


class PlainDecoder:
    """Reads events that are text, an end, or an error."""

    def __init__(self) -> None:
        self._is_over = False

    def decode(self, data: bytes) -> Iterable[ModelEvent]:
        try:
            event = json.loads(data)
        except ValueError:
            raise ProviderFailed(Failure("an event cannot be read")) from None
        match event:
            case {"text": str(text)}:
                yield TextDelta(text)
            case {"error": str(text)}:
                raise ProviderFailed(Failure(text, body=data))
            case {"end": True}:
                self._is_over = True
                yield Finished()

    def end(self) -> Iterable[ModelEvent]:
        if not self._is_over:
            raise ProviderFailed(Failure("no end", is_cut_off=True))
        return ()


class PlainWire:
    """Asks with whatever body it was made with."""

    def __init__(self, body: bytes = b"{}") -> None:
        self._body = body

    def request(self, request: ModelRequest, target: Target) -> HttpRequest:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {target.api_key.reveal()}",
        }
        return HttpRequest(f"{target.base_url}/answer", headers, self._body)

    def decoder(self) -> PlainDecoder:
        return PlainDecoder()


def sse(*events: object) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


def target(url: str) -> Target:
    return Target("acme", ProviderType.OPENAI_COMPATIBLE, "Acme", "m", url, Secret(KEY))


async def ask(
    models: HttpModels, url: str, wire: PlainWire | None = None
) -> tuple[list[ModelEvent], ModelError | None]:
    """Return what was answered until the end, and the error that it ended with.

    Deltas that arrive together are joined, and whether two do is chance: here all of them are.
    """
    events: list[ModelEvent] = []
    async with asyncio.timeout(10):
        try:
            await models.answer(wire or PlainWire(), REQUEST, target(url), answered(events.append))
        except ModelError as error:
            return list(joined_deltas(events)), error
    return list(joined_deltas(events)), None


async def played(models: HttpModels, *script: bytes | Act) -> tuple[list[ModelEvent], ModelError]:
    """Return what is left of a call that a script lets fail."""
    async with model_server(script) as server:
        events, error = await ask(models, server.url)
    assert error is not None
    return events, error


def said(events: list[ModelEvent]) -> list[ModelEvent]:
    return list(joined_deltas(event for event in events if event != Heartbeat()))


def seen(error: ModelError) -> tuple[ErrorKind, bool, int]:
    return error.kind, error.is_retryable, error.status_code


HELLO = [TextDelta("hello"), Finished()]
EVENTS = [sse({"text": "hel"}), sse({"text": "lo"}), sse({"end": True})]
BODY = b"".join(EVENTS)
CUT = (ErrorKind.TIMEOUT, True, 0)
