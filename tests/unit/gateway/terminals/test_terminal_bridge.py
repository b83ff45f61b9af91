import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest
from starlette.requests import Request
from starlette.types import Message

from gateway.http.addresses import PublicUrl
from gateway.http.authentication import Authentication
from gateway.http.forwarding import HOST
from gateway.http.problems.errors import HttpProblem
from gateway.http.websockets import as_request
from gateway.terminals.bridge import FRAMES_PER_S_MAX, TerminalBridge
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.clock import FakeClock

NOBODY: Any = None


class FakeNode:
    """An attachment that never prints by itself."""

    def __init__(self) -> None:
        self.answers: asyncio.Queue[api.AttachResponse] = asyncio.Queue()
        self.written: list[api.AttachRequest] = []
        self.is_cancelled = False

    async def read(self) -> api.AttachResponse:
        return await self.answers.get()

    async def write(self, request: api.AttachRequest) -> None:
        self.written.append(request)

    def cancel(self) -> None:
        self.is_cancelled = True


class FakeClient:
    """The other end of a WebSocket."""

    def __init__(self) -> None:
        self.sending: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.sending.put_nowait({"type": "websocket.connect"})
        self.told: list[dict[str, Any]] = []
        self.code: int | None = None
        self.reads = asyncio.Event()
        self.reads.set()

    async def receive(self) -> dict[str, Any]:
        return await self.sending.get()

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        if message["type"] == "websocket.close":
            self.code = message["code"]
            self.sending.put_nowait({"type": "websocket.disconnect", "code": self.code})
        elif "text" in message:
            self.told.append(msgspec.json.decode(message["text"]))

    def type(self, data: bytes) -> None:
        self.sending.put_nowait({"type": "websocket.receive", "bytes": data})


@contextmanager
def unwatched(is_over: Callable[[], None]) -> Iterator[None]:
    yield


async def speak(node: FakeNode, client: FakeClient, **options: Any) -> None:
    given: dict[str, Any] = {"watching": unwatched, "clock": FakeClock()} | options
    bridge = TerminalBridge(node, api.AttachOpened(), **given)
    async with asyncio.timeout(5):
        await bridge({"type": "http"}, client.receive, client.send)
    assert node.is_cancelled


async def test_more_frames_in_a_second_than_anybody_types_end_the_connection() -> None:
    node, client = FakeNode(), FakeClient()
    for _ in range(FRAMES_PER_S_MAX + 1):
        client.type(b"x")
    await speak(node, client)
    assert (client.code, client.told[-1]["code"]) == (1008, "TOO_MANY_FRAMES")
    assert len(node.written) == FRAMES_PER_S_MAX


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        (
            '{"type":"resize","rows":0,"columns":"80"}',
            "Text is for control messages. /rows: Give a whole number from 1 to 1000. /columns: "
            "Give a whole number, not a text.",
        ),
        (
            '{"type":"scroll"}',
            "Text is for control messages. /type: Give one of resize, signal.",
        ),
        (
            "ls",
            "Text is for control messages. The body is not one JSON document in UTF-8; see line 1, "
            "column 1.",
        ),
    ],
)
async def test_a_control_message_that_cannot_be_is_refused_in_words(text: str, detail: str) -> None:
    node, client = FakeNode(), FakeClient()
    client.sending.put_nowait({"type": "websocket.receive", "text": text})
    await speak(node, client)
    assert (client.code, client.told[-1]["code"], client.told[-1]["detail"]) == (
        1008,
        "BAD_FRAME",
        detail,
    )


async def test_a_client_that_reads_nothing_is_left() -> None:
    node, client = FakeNode(), FakeClient()
    chunk = process_pb2.OutputChunk(data=b"x")
    stops = api.AttachResponse(chunk=chunk)
    node.answers.put_nowait(stops)

    async def send(message: Message) -> None:
        if "bytes" in message:
            client.reads.clear()
        await FakeClient.send(client, message)

    bridge = TerminalBridge(
        node, api.AttachOpened(), watching=unwatched, clock=FakeClock(), unread_s_max=0.05
    )
    async with asyncio.timeout(5):
        await bridge({"type": "http"}, client.receive, send)
    assert node.is_cancelled
    assert client.code is None


async def test_who_is_signed_out_is_left() -> None:
    node, client = FakeNode(), FakeClient()

    @contextmanager
    def over_at_once(is_over: Callable[[], None]) -> Iterator[None]:
        is_over()
        yield

    await speak(node, client, watching=over_at_once)
    assert (client.code, client.told[-1]["code"]) == (1008, "UNAUTHENTICATED")


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null"])
async def test_a_cookie_opens_no_websocket_for_another_page(origin: str | None) -> None:
    url = PublicUrl.parse("http://parley.example")
    authentication = Authentication(NOBODY, NOBODY, public_url=url, clock=FakeClock())
    headers = [(b"host", b"parley.example"), (b"cookie", b"parley_session=x")]
    headers += [] if origin is None else [(b"origin", origin.encode())]
    scope = as_request({"type": "websocket", "path": "/", "headers": headers})
    scope[HOST] = "parley.example"
    with pytest.raises(HttpProblem) as refused:
        await authentication.require(Request(scope))
    assert (refused.value.status, refused.value.code) == (403, "CROSS_SITE_REQUEST")
