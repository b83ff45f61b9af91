"""A small HTTP client on real sockets, which shows exactly what a server sent."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer; header names are lower case, and of a repeated one the last value counts."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    set_cookies: tuple[str, ...] = ()

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One server-sent event."""

    event: str
    data: Any
    id: str | None = None


class EventReader:
    """The frames of an open event stream."""

    def __init__(self, reader: asyncio.StreamReader, reply: Reply) -> None:
        self._reader = reader
        self._buffer = b""
        self._is_over = False
        self.reply = reply

    async def frame(self) -> str | None:
        """Return the next frame as it was sent, without its blank line; None at the end."""
        while b"\n\n" not in self._buffer:
            if self._is_over:
                return None
            self._buffer += await self._chunk()
        frame, _, self._buffer = self._buffer.partition(b"\n\n")
        return frame.decode()

    async def event(self) -> SentEvent | None:
        """Return the next event, passing over comments; None at the end."""
        while (frame := await self.frame()) is not None:
            lines = (line.partition(":") for line in frame.splitlines())
            fields = {name: value.removeprefix(" ") for name, _, value in lines}
            if "event" in fields:
                return SentEvent(fields["event"], json.loads(fields["data"]), fields.get("id"))
        return None

    async def _chunk(self) -> bytes:
        size = int((await self._reader.readline()).strip() or b"0", 16)
        chunk = await self._reader.readexactly(size) if size else b""
        await self._reader.readline()
        self._is_over = size == 0
        return chunk


class HttpClient:
    """Makes requests to one server, each on a connection of its own."""

    def __init__(
        self, port: int, headers: Mapping[str, str] | None = None, limit_s: float = 60
    ) -> None:
        self._port = port
        self._limit_s = limit_s
        self._headers = {"Host": f"127.0.0.1:{port}", **(headers or {})}

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Make a request and return its answer; a body that is no bytes is sent as JSON."""
        opened = self._opened(method, path, body, headers)
        async with asyncio.timeout(self._limit_s), opened as (reader, reply):
            if reply.headers.get("transfer-encoding") == "chunked":
                content = b""
                while size := int((await reader.readline()).strip(), 16):
                    content += await reader.readexactly(size)
                    await reader.readline()
            else:
                length = 0 if method == "HEAD" else int(reply.headers.get("content-length", "0"))
                content = await reader.readexactly(length)
            return Reply(reply.status, reply.headers, content, reply.set_cookies)

    @asynccontextmanager
    async def asking(self, method: str, path: str, body: Any = None) -> AsyncIterator[None]:
        """Make a request, and hang up at the end of the context without having read an answer."""
        content = b"" if body is None else _json(body)
        sent = {**self._headers, "Connection": "close"}
        if body is not None:
            sent |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in sent.items())]
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write("\r\n".join((*lines, "", "")).encode() + content)
            await writer.drain()
            yield
        finally:
            writer.close()

    @asynccontextmanager
    async def stream(
        self, path: str, headers: Mapping[str, str] | None = None
    ) -> AsyncIterator[EventReader]:
        """Give an open event stream."""
        async with self._opened("GET", path, None, headers) as (reader, reply):
            yield EventReader(reader, reply)

    @asynccontextmanager
    async def _opened(
        self, method: str, path: str, body: Any, headers: Mapping[str, str] | None
    ) -> AsyncIterator[tuple[asyncio.StreamReader, Reply]]:
        content = b"" if body is None else body if isinstance(body, bytes) else _json(body)
        sent = {**self._headers, "Connection": "close"}
        if body is not None:
            sent |= {"Content-Type": "application/json", "Content-Length": str(len(content))}
        sent |= headers or {}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {text}" for name, text in sent.items())]
        reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            writer.write("\r\n".join((*lines, "", "")).encode() + content)
            await writer.drain()
            status = int((await reader.readline()).split()[1])
            found: dict[str, str] = {}
            set_cookies: list[str] = []
            while line := (await reader.readline()).decode().strip():
                name, _, text = line.partition(":")
                found[name.lower()] = text.strip()
                if name.lower() == "set-cookie":
                    set_cookies.append(text.strip())
            yield reader, Reply(status, found, b"", tuple(set_cookies))
        finally:
            writer.close()


def _json(body: Any) -> bytes:
    return json.dumps(body).encode()
