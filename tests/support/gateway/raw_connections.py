"""A server of HTTP, and connections to it that send whatever they are told."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NoReturn

from starlette.types import ASGIApp

from gateway.http.addresses import HttpAddress
from gateway.http.limits.connections import OpenConnections
from gateway.http.protocol import HeadLimits
from gateway.http.server import serve_http
from parley.clock import Clock, SystemClock

ANYWHERE: Final = HttpAddress("127.0.0.1", 0)
HEAD: Final = b"POST / HTTP/1.1\r\nHost: parley.test\r\n"
PUBLIC_URL: Final = "https://parley.test"
CHUNKED: Final = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


async def greet(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the size of the body, whoever asks for whatever."""
    size, has_more = 0, True
    while has_more:
        message = await receive()
        size, has_more = size + len(message.get("body", b"")), message.get("more_body", False)
    body = str(size).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class Connection:
    """A connection that sends what it is told."""

    def __init__(self, address: HttpAddress) -> None:
        self._address = address
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        address = self._address
        self._reader, self._writer = await asyncio.open_connection(address.host, address.port)

    async def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            with suppress(ConnectionError):
                await self._writer.wait_closed()
            self._writer = None

    async def send(self, data: bytes) -> None:
        assert self._writer is not None
        self._writer.write(data)
        await self._writer.drain()

    async def send_without_end(self) -> NoReturn:
        while True:
            await self.send(b"x" * 4096)

    async def head(self) -> str:
        """Return the head of the next answer, in small letters."""
        return (await self._reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def answer(self) -> tuple[int, bytes]:
        """Return the status and the body of the next answer."""
        head = await self.head()
        length = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        return int(head.split()[1]), await self._reader.readexactly(length)

    async def rest(self) -> bytes:
        """Return everything until the server closes the connection."""
        return await self._reader.read()


@asynccontextmanager
async def connected(
    *,
    app: ASGIApp = greet,
    limits: HeadLimits | None = None,
    clock: Clock | None = None,
    connections_max: int = 10,
    connections: int = 1,
    further: int = 0,
) -> AsyncIterator[tuple[Connection, ...]]:
    async with (
        asyncio.timeout(10),
        serve_http(
            app,
            ANYWHERE,
            public_url=PUBLIC_URL,
            open_connections=OpenConnections(connections_max, address_max=connections_max),
            clock=clock or SystemClock(),
            limits=limits,
        ) as address,
    ):
        made = tuple(Connection(address) for _ in range(connections + further))
        for connection in made[:connections]:
            await connection.connect()
        try:
            yield made
        finally:
            for connection in made:
                await connection.close()


def code_of(answer: tuple[int, bytes]) -> tuple[int, str]:
    status, body = answer
    return status, json.loads(body)["code"]
