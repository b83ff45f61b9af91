"""A Parley that a test makes misbehave: one chat, whose stream is written in advance."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from parley.testing.scaletest import Target
from support.testing.told_chat import HEALTHY, MESSAGES, Told

CHAT_ID = "00000000-0000-0000-0000-000000000001"
#: With this event the second turn begins.
SECOND_TURN = HEALTHY[8].cursor


@dataclass(slots=True)
class FakeParley:
    """What it answers, and what it was asked.

    Attributes:
        events: Everything its one chat will tell; the second turn only after it was sent.
        breaks: After so many events a connection is closed in the middle of the next one.
        messages: What is in the chat in the end.
        refusals: Statuses that requests are answered with first, by method and end of path; 200
            for as always.
        is_silent: Whether streams tell nothing.
    """

    events: Sequence[Told] = HEALTHY
    breaks: list[int] = field(default_factory=list)
    messages: Sequence[dict[str, Any]] = MESSAGES
    refusals: dict[tuple[str, str], list[int]] = field(default_factory=dict)
    is_silent: bool = False
    target: Target = field(default=Target("", ""), init=False)
    asked: list[tuple[str, str]] = field(default_factory=list, init=False)
    cursors: list[str] = field(default_factory=list, init=False)
    keys: list[str] = field(default_factory=list, init=False)
    _sent: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @asynccontextmanager
    async def serving(self) -> AsyncIterator["FakeParley"]:
        """Answer until the context ends."""
        serving: list[asyncio.Task[None]] = []
        async with asyncio.TaskGroup() as tasks:
            server = await asyncio.start_server(
                lambda reader, writer: serving.append(
                    tasks.create_task(self._serve(reader, writer))
                ),
                "127.0.0.1",
                0,
            )
            port = server.sockets[0].getsockname()[1]
            self.target = Target(f"http://127.0.0.1:{port}", "key")
            try:
                yield self
            finally:
                server.close()
                for task in serving:
                    task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode().strip().split("\r\n")
        method, path, _ = first.split(" ")
        headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
        await reader.readexactly(int(headers.get("content-length", 0)))
        path = path.removeprefix("/api/v1")
        self.asked.append((method, path))
        self.keys += [headers["idempotency-key"]] if "idempotency-key" in headers else []
        name = (method, path.partition("?")[0].rpartition("/")[2])
        refusals = self.refusals.get(name, [])
        if refusals and (status := refusals.pop(0)) != 200:
            writer.write(_answer(status, {"title": "Not today"}))
            return True
        if name == ("GET", "events"):
            self.cursors.append(headers.get("last-event-id", ""))
            await self._stream(writer, headers.get("last-event-id", ""))
            return False
        match name:
            case ("POST", "chats"):
                writer.write(_answer(201, {"id": CHAT_ID}))
            case ("POST", "messages"):
                self._sent.set()
                writer.write(_answer(202, {"queued": False}))
            case ("GET", "messages"):
                page = {"messages": list(self.messages)[::-1], "has_more": False}
                writer.write(_answer(200, page))
            case _:
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        return True

    async def _stream(self, writer: asyncio.StreamWriter, cursor: str) -> None:
        head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked"
        writer.write(head.encode() + b"\r\n\r\n" + _chunk(b"retry: 2000\n: connected\n\n"))
        if self.is_silent:
            await self._sent.wait()
        places = [event.cursor for event in self.events]
        begin = places.index(cursor) + 1 if cursor else 0
        left = self.breaks.pop(0) if self.breaks else len(self.events)
        for event in self.events[begin:]:
            if event.cursor == SECOND_TURN:
                await self._sent.wait()
            data = {"type": event.kind, "chat_id": CHAT_ID, **event.data}
            text = f"id: {event.cursor}\nevent: {event.kind}\ndata: {json.dumps(data)}\n\n"
            chunk = _chunk(text.encode())
            if left == 0:
                writer.write(chunk[: len(chunk) // 2])
                await writer.drain()
                return
            left -= 1
            writer.write(chunk)
            await writer.drain()
        await asyncio.Event().wait()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def _answer(status: int, document: object) -> bytes:
    body = json.dumps(document).encode()
    return f"HTTP/1.1 {status} -\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
