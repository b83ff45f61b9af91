"""A proxy before PostgreSQL that loses bytes exactly where a test wants it to.

Connections are known by the application name that they begin with, so a test can break the one
that listens and leave those that write alone.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

CHUNK_BYTES = 1 << 16
NAME = re.compile(rb"application_name\x00([^\x00]*)\x00")


class Cut(StrEnum):
    """Where a statement is cut off."""

    BEFORE = "before"  # The server never sees it.
    AFTER = "after"  # The server does it, and its answer is lost.


@dataclass(slots=True, eq=False)
class Link:
    """One connection through the proxy."""

    writer: asyncio.StreamWriter
    upstream: asyncio.StreamWriter
    opened_s: float
    name: str = ""
    is_silent: bool = False  # Nothing passes, and nobody is told.
    is_answer_lost: bool = False

    def close(self) -> None:
        """Break both sides."""
        for writer in (self.writer, self.upstream):
            writer.transport.abort()


@dataclass(slots=True)
class FaultProxy:
    """Passes bytes to the server's socket until it is told otherwise."""

    server: Path
    links: list[Link] = field(default_factory=list)
    cuts: dict[bytes, Cut] = field(default_factory=dict)
    done: list[bytes] = field(default_factory=list)
    passed: asyncio.Event = field(default_factory=asyncio.Event)

    def cut(self, mark: str, where: Cut) -> None:
        """Break the connection whose statement carries `mark`, once."""
        self.cuts[mark.encode()] = where

    def named(self, ending: str) -> list[Link]:
        """Return the open connections whose name ends so."""
        return [link for link in self.links if link.name.endswith(ending)]

    @asynccontextmanager
    async def listening(self, path: Path) -> AsyncIterator[None]:
        """Serve at a socket until the context ends."""
        server = await asyncio.start_unix_server(self._serve, path)
        try:
            yield
        finally:
            server.close()
            for link in list(self.links):
                link.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            from_server, upstream = await asyncio.open_unix_connection(self.server)
        except OSError:
            writer.close()
            return
        link = Link(writer, upstream, time.monotonic())
        self.links.append(link)
        try:
            with suppress(OSError, ExceptionGroup):
                async with asyncio.TaskGroup() as tasks:
                    asking = tasks.create_task(self._pass_questions(reader, link))
                    answering = tasks.create_task(self._pass_answers(from_server, link))
                    both = (asking, answering)
                    await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
                    for task in both:
                        task.cancel()
        finally:
            self.links.remove(link)
            link.close()

    async def _pass_questions(self, reader: asyncio.StreamReader, link: Link) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if not link.name and (found := NAME.search(data)):
                link.name = found[1].decode()
            for mark in [mark for mark in self.cuts if mark in data]:
                self.done.append(mark)
                if self.cuts.pop(mark) is Cut.BEFORE:
                    return
                link.is_answer_lost = True
            if not link.is_silent:
                link.upstream.write(data)
                await link.upstream.drain()

    async def _pass_answers(self, reader: asyncio.StreamReader, link: Link) -> None:
        while data := await reader.read(CHUNK_BYTES):
            if link.is_answer_lost:
                return
            if not link.is_silent:
                link.writer.write(data)
                await link.writer.drain()
