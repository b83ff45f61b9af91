"""Servers that offer more tools than anybody needs, on one page or on pages without an end."""

import asyncio
import itertools
import json
from typing import Any

import pytest

from mcpgateway.client.operations import INSTRUCTIONS_BYTES_MAX, PAGES_MAX
from mcpgateway.client.sessions import Sessions
from mcpgateway.client.translation import CATALOGUE_BYTES_MAX, TOOLS_MAX
from parley.egress import Policy
from support.host.ports import free_port
from support.host.supervised import supervision
from support.mcpgateway.servers import raw_server
from support.mcpgateway.values import a_server, a_target

DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"tools": {}},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "public",
}


class Server:
    """Answers each page with new tools, and names another page unless it is the last one.

    A page is given to whom asks for it by the cursor of the page before.
    """

    def __init__(
        self, page_size: int, schema: dict[str, Any] | None = None, pages_max: int | None = None
    ) -> None:
        self._numbers = itertools.count()
        self._page_size = page_size
        self._schema = schema or {"type": "object"}
        self._pages_max = pages_max
        self.pages = 0
        self.discovered: dict[str, Any] = DISCOVERED

    def answer(self, request: bytes) -> bytes:
        """Answer one HTTP request."""
        asked = json.loads(request.partition(b"\r\n\r\n")[2])
        said: dict[str, Any] = {"result": self.discovered}
        if asked["method"] == "tools/list":
            said = self._page(asked.get("params", {}).get("cursor"))
        body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}).encode()
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        return head % len(body) + body

    def _page(self, cursor: str | None) -> dict[str, Any]:
        if cursor != (f"after {self.pages}" if self.pages else None):
            return {"error": {"code": -32602, "message": "there is no such page"}}
        self.pages += 1
        numbers = itertools.islice(self._numbers, self._page_size)
        tools = [{"name": f"t{each}", "inputSchema": self._schema} for each in numbers]
        is_last = self.pages == self._pages_max
        further = {} if is_last else {"nextCursor": f"after {self.pages}"}
        return {"result": DISCOVERED | {"tools": tools, **further}}


@pytest.mark.parametrize(
    ("page_size", "pages", "kept", "dropped"),
    [
        (3, PAGES_MAX, 3 * PAGES_MAX, 0),
        (300, 7, TOOLS_MAX, 100),
        (10_000, 1, TOOLS_MAX, 10_000 - TOOLS_MAX),
    ],
)
async def test_a_listing_ends_at_its_bounds(
    page_size: int, pages: int, kept: int, dropped: int
) -> None:
    port, server = free_port(), Server(page_size)
    url = f"http://127.0.0.1:{port}/mcp"
    async with (
        asyncio.timeout(60),
        raw_server(port, server.answer),
        Sessions.open(Policy().with_url(url), supervision()) as sessions,
    ):
        catalogue = await sessions.list_tools(a_target(a_server(url=url)))

    assert (server.pages, len(catalogue.tools), catalogue.dropped) == (pages, kept, dropped)


async def test_a_listing_has_the_tools_of_all_pages() -> None:
    port, server = free_port(), Server(3, pages_max=2)
    url = f"http://127.0.0.1:{port}/mcp"
    async with (
        asyncio.timeout(60),
        raw_server(port, server.answer),
        Sessions.open(Policy().with_url(url), supervision()) as sessions,
    ):
        catalogue = await sessions.list_tools(a_target(a_server(url=url)))

    assert (list(catalogue.tools), catalogue.dropped) == ([f"t{each}" for each in range(6)], 0)


async def test_a_listing_ends_at_its_bytes() -> None:
    port = free_port()
    server = Server(20, {"type": "object", "description": "x" * 60_000})
    url = f"http://127.0.0.1:{port}/mcp"
    async with (
        asyncio.timeout(60),
        raw_server(port, server.answer),
        Sessions.open(Policy().with_url(url), supervision()) as sessions,
    ):
        catalogue = await sessions.list_tools(a_target(a_server(url=url)))

    kept = len(catalogue.tools)
    assert kept == CATALOGUE_BYTES_MAX // 60_000
    # The page of the first that did not fit was the last one.
    assert (server.pages, catalogue.dropped) == (kept // 20 + 1, 20 * server.pages - kept)


async def test_long_instructions_are_cut_and_say_so() -> None:
    port, server = free_port(), Server(1, pages_max=1)
    server.discovered |= {"instructions": "Be bri\u200bef. " + "\u00e4" * 100_000}
    url = f"http://127.0.0.1:{port}/mcp"
    async with (
        asyncio.timeout(60),
        raw_server(port, server.answer),
        Sessions.open(Policy().with_url(url), supervision()) as sessions,
    ):
        said = (await sessions.list_tools(a_target(a_server(url=url)))).instructions

    assert (said[:12], said.count("\u200b")) == ("Be brief. \u00e4\u00e4", 0)
    assert INSTRUCTIONS_BYTES_MAX / 2 < len(said.encode()) <= INSTRUCTIONS_BYTES_MAX
    assert not said.endswith("\u00e4")
