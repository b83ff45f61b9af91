"""A minimal HTTP endpoint for scrapers: GET /metrics only."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Final

from prometheus_client import CONTENT_TYPE_LATEST

from parley.telemetry.errors import MetricsAddressInvalid, MetricsAddressTaken

REQUEST_S_MAX: Final = 5.0
REQUEST_BYTES_MAX: Final = 16 * 1024


@asynccontextmanager
async def serve_metrics(listen: str, text: Callable[[], str]) -> AsyncIterator[str]:
    """Answer GET /metrics with `text()` on `listen`; yield the bound host:port.

    Raises:
        MetricsAddressInvalid: `listen` is not host:port.
        MetricsAddressTaken: The address cannot be bound.
    """
    host, port = _host_and_port(listen)
    try:
        server = await asyncio.start_server(
            partial(_answer, text), host, port, limit=REQUEST_BYTES_MAX
        )
    except OSError as error:
        cause = os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)
        raise MetricsAddressTaken(listen, cause.lower()) from error
    try:
        yield f"{host}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await server.wait_closed()


async def _answer(
    text: Callable[[], str], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    # Scrapers may disconnect at any time, which is not an error.
    try:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(REQUEST_S_MAX):
                writer.write(_response(await _request_line(reader), text))
                await writer.drain()
    finally:
        writer.close()


async def _request_line(reader: asyncio.StreamReader) -> list[str]:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        return []
    return head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")


def _response(request_line: list[str], text: Callable[[], str]) -> bytes:
    content_type = "text/plain; charset=utf-8"
    match request_line:
        case ["GET" | "HEAD", target, _] if target.split("?", 1)[0] == "/metrics":
            status, content_type, body = HTTPStatus.OK, CONTENT_TYPE_LATEST, text()
        case ["GET" | "HEAD", _, _]:
            status, body = HTTPStatus.NOT_FOUND, "only /metrics is here\n"
        case [_, _, _]:
            status, body = HTTPStatus.METHOD_NOT_ALLOWED, "only GET is allowed\n"
        case _:
            status, body = HTTPStatus.BAD_REQUEST, "this is not an HTTP request\n"
    content = body.encode()
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\n"
        f"Content-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + (b"" if request_line[:1] == ["HEAD"] else content)


def _host_and_port(listen: str) -> tuple[str, int]:
    host, separator, port = listen.rpartition(":")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise MetricsAddressInvalid(listen)
    return host.removeprefix("[").removesuffix("]"), int(port)
