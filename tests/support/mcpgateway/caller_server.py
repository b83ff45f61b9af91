"""An MCP server that puts into its answers and its catalogue whose credential a request has."""

import hashlib
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from support.host.ports import free_port
from support.mcpgateway.everything_server import everything, served

#: Stands in texts for the name of the caller, which has the same length.
CALLER = "CALLER--"


def name_of(credential: str) -> str:
    """Return the name by which a server calls the holder of a credential."""
    return hashlib.sha256(credential.encode()).hexdigest()[: len(CALLER)]


@dataclass(slots=True)
class CallerServer:
    """A running server, and how many requests it got with each credential."""

    url: str
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def place(self) -> str:
        """The host and port, as the egress policy names them."""
        return self.url.removeprefix("http://").partition("/")[0]


class NamesCallers:
    """Stands before an application, and fills in the names of callers."""

    def __init__(self, application: ASGIApp, seen: Counter[str]) -> None:
        self._application = application
        self._seen = seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on."""
        credential = dict(scope.get("headers", ())).get(b"x-key", b"").decode()
        if scope["type"] == "http":
            self._seen[credential] += 1

        async def sending(message: Message) -> None:
            body = message.get("body")
            if body:
                name = name_of(credential).encode()
                message = {**message, "body": body.replace(CALLER.encode(), name)}
            await send(message)

        await self._application(scope, receive, sending)


@asynccontextmanager
async def caller_server() -> AsyncIterator[CallerServer]:
    """Serve it over streamable HTTP until the context ends."""
    port = free_port()
    made = CallerServer(f"http://127.0.0.1:{port}/mcp")
    application = everything(made.url, f"Repeat a text for {CALLER}.").server.streamable_http_app()
    async with served(NamesCallers(application, made.seen), port):
        yield made
