"""A proxy before the gateway that breaks its clients' connections when a test wants it to."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field

CHUNK_BYTES = 1 << 16


@dataclass(slots=True)
class CuttingProxy:
    """Passes bytes to a port of this machine.

    Attributes:
        upstream_port: Where the server listens.
        port: Where it listens itself, once it does.
        heads: What clients sent, which shows their requests.
        cut_behind: Break the connection on which these bytes pass towards the client, once.
    """

    upstream_port: int
    port: int = 0
    heads: list[bytes] = field(default_factory=list)
    cut_behind: bytes = b""
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)

    def cut(self) -> None:
        """Break all connections."""
        for writer in list(self._writers):
            writer.transport.abort()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[None]:
        """Serve until the context ends."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield
        finally:
            server.close()
            self.cut()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        both = {writer}
        self._writers.add(writer)
        try:
            with suppress(OSError, ExceptionGroup):
                from_server, upstream = await asyncio.open_connection(
                    "127.0.0.1", self.upstream_port
                )
                both.add(upstream)
                self._writers.add(upstream)
                async with asyncio.TaskGroup() as tasks:
                    ways = (
                        tasks.create_task(self._pass_requests(reader, upstream)),
                        tasks.create_task(self._pass_answers(from_server, writer)),
                    )
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                    for way in ways:
                        way.cancel()
        finally:
            self._writers -= both
            for each in both:
                each.transport.abort()

    async def _pass_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            self.heads.append(data)
            writer.write(data)
            await writer.drain()

    async def _pass_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(CHUNK_BYTES):
            writer.write(data)
            await writer.drain()
            if self.cut_behind and self.cut_behind in data:
                self.cut_behind = b""
                return


@contextmanager
def cutting(upstream_port: int) -> Iterator[tuple[int, Callable[[], None]]]:
    """Have a proxy beside a test that waits for programs: its port, and what cuts connections."""
    loop, proxy = asyncio.new_event_loop(), CuttingProxy(upstream_port)
    stopping, is_listening = asyncio.Event(), threading.Event()

    async def listen() -> None:
        async with proxy.listening():
            is_listening.set()
            await stopping.wait()

    def cut() -> None:
        loop.call_soon_threadsafe(proxy.cut)

    thread = threading.Thread(target=loop.run_until_complete, args=(listen(),))
    thread.start()
    try:
        assert is_listening.wait(10)
        yield proxy.port, cut
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
        loop.close()
