"""A server in the test's own process, behind the port of processes, that says what a test says."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from chatd.workspace_servers.domain.definition import ServerDefinition
from chatd.workspace_servers.domain.ports import ServerPipes, ServerPlace

Answers = Callable[[dict[str, Any]], dict[str, Any] | None]


def lists_nothing(message: dict[str, Any]) -> dict[str, Any] | None:
    """Answer the opening and a listing, and no call."""
    match message.get("method"):
        case "initialize":
            return {}
        case "tools/list":
            return {"tools": []}
        case _:
            return None


@dataclass(slots=True)
class ScriptedServer:
    """Runs as one server at a time; what it receives and prints is at hand.

    Attributes:
        answers: Returns the result of a request; None leaves it without an answer.
        received: The messages that it was sent.
        failure: Raised instead of starting.
    """

    answers: Answers = lists_nothing
    received: list[dict[str, Any]] = field(default_factory=list)
    failure: Exception | None = None
    _printed: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)

    @asynccontextmanager
    async def opened(
        self, place: ServerPlace, definition: ServerDefinition
    ) -> AsyncIterator[ServerPipes]:
        if self.failure is not None:
            raise self.failure
        yield self

    async def write(self, data: bytes) -> None:
        for line in data.splitlines():
            message = json.loads(line)
            self.received.append(message)
            if "id" in message and (result := self.answers(message)) is not None:
                self.print(id=message["id"], result=result)

    async def read(self) -> bytes:
        return await self._printed.get()

    def print(self, **document: Any) -> None:
        """Print one message."""
        self._printed.put_nowait(json.dumps(document).encode() + b"\n")

    def requests(self, method: str) -> int:
        """Return how many requests of a method it was sent."""
        return sum(1 for message in self.received if message.get("method") == method)


@dataclass(slots=True)
class EachScripted:
    """Runs any number of servers at a time, each of which answers alike."""

    answers: Answers = lists_nothing
    started: list[ScriptedServer] = field(default_factory=list)
    failure: Exception | None = None

    def opened(
        self, place: ServerPlace, definition: ServerDefinition
    ) -> AbstractAsyncContextManager[ServerPipes]:
        server = ScriptedServer(self.answers, failure=self.failure)
        self.started.append(server)
        return server.opened(place, definition)
