"""MCP servers for tests: real ones in processes of their own, and hostile ones made by hand."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support.host.ports import free_port

# Python and the SDK of MCP take seconds to load, and many times that beside other tests.
START_S_MAX = 120.0
SESSION_SERVER = Path(__file__).with_name("session_server.py")


@contextlib.contextmanager
def demo_process(port: int, **variables: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run the demo's server, which speaks today's protocol."""
    environment = {"MCP_DEMO_LISTEN": f"127.0.0.1:{port}", **variables}
    with _process(["-m", "mcpgateway.demo"], environment) as process:
        yield process


@contextlib.contextmanager
def session_process(port: int, transport: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a server of the handshake era, with sessions; the transport is mcp, json or sse."""
    with _process([str(SESSION_SERVER), str(port), transport], {}) as process:
        yield process


@contextlib.contextmanager
def everything_process(port: int) -> "Iterator[subprocess.Popen[bytes]]":
    """Run the server of `everything_server` in a process of its own."""
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    with _process(["-m", "support.mcpgateway.everything_server", str(port)], path) as process:
        yield process


@contextlib.contextmanager
def eliciting_process(port: int, kind: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run a server whose tools ask; the kind is modern, mcp (with sessions) or sse."""
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    module = ["-m", "support.mcpgateway.eliciting_server"]
    with _process([*module, str(port), kind], path) as process:
        yield process


@contextlib.contextmanager
def kind_process(port: int, kind: str) -> "Iterator[subprocess.Popen[bytes]]":
    """Run the server of `kinds_server`: modern, mcp (with sessions) or sse."""
    path = {"PYTHONPATH": str(Path(__file__).parents[2])}
    module = ["-m", "support.mcpgateway.kinds_server"]
    with _process([*module, str(port), kind], path) as process:
        yield process


async def until_listening(port: int) -> None:
    """Wait until something accepts connections there, however slow the machine is."""
    async with asyncio.timeout(START_S_MAX):
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                await writer.wait_closed()
                return
            await asyncio.sleep(0.02)  # noqa: TID251 (another process gives no event)


@contextlib.asynccontextmanager
async def raw_server(port: int, answer: Callable[[bytes], bytes | None]) -> AsyncIterator[None]:
    """Serve HTTP by hand: each request is answered with the given bytes; None hangs up."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await read_request(reader)) is not None:
                response = answer(request)
                if response is None:
                    break
                writer.write(response)
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async with asyncio.TaskGroup() as tasks:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tasks.create_task(converse(reader, writer))

        server = await asyncio.start_server(accept, "127.0.0.1", port)
        try:
            yield
        finally:
            server.close()


@dataclass(slots=True)
class RefusingServer:
    """An address at which every connection is closed at once, and how many there were."""

    url: str
    connections: int = 0


@contextlib.asynccontextmanager
async def refusing_server() -> AsyncIterator[RefusingServer]:
    """Close every connection to a port before a request can be answered."""
    port = free_port()
    refusing = RefusingServer(f"http://127.0.0.1:{port}/mcp")

    def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        refusing.connections += 1
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", port)
    try:
        yield refusing
    finally:
        server.close()


async def read_request(reader: asyncio.StreamReader) -> bytes | None:
    """Read one HTTP request with its body; None at the end."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.lower().split(b"\r\n")
        lengths = [line for line in lines if line.startswith(b"content-length:")]
        length = int(lengths[0].partition(b":")[2]) if lengths else 0
        return head + await reader.readexactly(length)
    except (asyncio.IncompleteReadError, ConnectionError):
        return None


@contextlib.contextmanager
def _process(
    arguments: list[str], variables: dict[str, str]
) -> "Iterator[subprocess.Popen[bytes]]":
    environment = {**os.environ, **variables}  # noqa: TID251 (handed on to the child)
    process = subprocess.Popen([sys.executable, *arguments], env=environment)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
