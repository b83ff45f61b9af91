"""Sessions with servers that send too much, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from chatd.workspace_servers.domain.definition import ServerDefinition
from chatd.workspace_servers.domain.large_lines import LARGE_LINE_BYTES
from chatd.workspace_servers.domain.messages import LISTING_LINE_BYTES_MAX
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.tools import ENTRIES_MAX
from chatd.workspace_servers.engine.session import (
    IDLE_S,
    LISTING_PAUSE_S,
    OPENING_S,
    STOPPED,
    UNASKED_BYTES_MAX,
    ServerSession,
)
from chatd.workspaces.domain.ports import WorkspaceLocation
from support.chatd.workspace_servers.counting_reducer import CountingReducer
from support.chatd.workspace_servers.scripted_server import ScriptedServer, lists_nothing
from support.chatd.workspaces.workspace_calls import ANN, CHAT
from support.host.virtual_time import LoopClock, in_virtual_time

PLACE = ServerPlace(CHAT, ANN, WorkspaceLocation("node:1", "workspace"), is_read_only=False)
DEFINITION = ServerDefinition("plain", "run", digest="digest")


@asynccontextmanager
async def running(
    server: ScriptedServer, reducer: CountingReducer | None = None
) -> AsyncIterator[ServerSession]:
    """Run a session; yield it when it is ready or has failed."""
    session = ServerSession(server, PLACE, DEFINITION, LoopClock(), reducer or CountingReducer())
    async with asyncio.TaskGroup() as group:
        group.create_task(session.run())
        await session.ready.wait()
        yield session
        session.stopping.set()


def pages(entries: list[Any], **more: Any) -> Any:
    """Return the answers of a server each of whose pages has the same entries and a successor."""

    def answered(message: dict[str, Any]) -> dict[str, Any] | None:
        if message.get("method") == "tools/list":
            return {"tools": entries, "nextCursor": "more"}
        return more if message.get("method") == "initialize" else None

    return answered


@in_virtual_time
async def test_a_listing_ends_at_the_maximum_of_entries_over_its_pages() -> None:
    server = ScriptedServer(pages(["no tool"] * (ENTRIES_MAX // 2)))
    async with running(server) as session:
        assert (session.tools, session.failure) == ((), "")
        assert server.requests("tools/list") == 2


@in_virtual_time
async def test_a_text_that_ends_in_half_a_character_is_kept() -> None:
    cut = {"name": "cut", "inputSchema": {}, "description": "an emoji \ud83d"}
    server = ScriptedServer(pages([cut]))
    async with running(server) as session:
        assert [tool.description for tool in session.tools] == ["an emoji \ufffd"]


@in_virtual_time
async def test_of_what_a_server_says_that_it_has_only_what_it_is_asked_for_is_kept() -> None:
    others: dict[str, Any] = {f"other{number}": {} for number in range(100)}
    server = ScriptedServer(pages([], capabilities={"prompts": {}, "tools": {}, **others}))
    async with running(server) as session:
        assert session.capabilities == {"prompts"}


@in_virtual_time
async def test_a_server_that_says_that_its_tools_changed_is_listed_again_after_a_pause() -> None:
    server = ScriptedServer()
    async with running(server):
        for _ in range(100):
            server.print(method="notifications/tools/list_changed")
        await LoopClock().sleep(LISTING_PAUSE_S / 2)
        assert server.requests("tools/list") == 1
        await LoopClock().sleep(LISTING_PAUSE_S)
        assert server.requests("tools/list") == 2


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "again"])
def test_a_listing_that_is_too_long_ends_the_server(is_first: bool) -> None:
    @in_virtual_time
    async def run() -> None:
        large = {"tools": ["x" * LISTING_LINE_BYTES_MAX]}
        server = ScriptedServer()

        def answered(message: dict[str, Any]) -> dict[str, Any] | None:
            is_large = message.get("method") == "tools/list" and (
                is_first or server.requests("tools/list") > 1
            )
            return large if is_large else lists_nothing(message)

        server.answers = answered
        async with running(server) as session:
            server.print(method="notifications/tools/list_changed")
            await LoopClock().sleep(2 * LISTING_PAUSE_S)
            assert f"of over {LISTING_LINE_BYTES_MAX} bytes" in session.failure

    run()


@in_virtual_time
async def test_answers_to_no_request_count_as_what_a_server_sends_unasked() -> None:
    server = ScriptedServer()
    async with running(server) as session:
        text = "x" * (4 * 1024 * 1024)
        for _ in range(UNASKED_BYTES_MAX // len(text)):
            server.print(id=999, result={"text": text})
        await LoopClock().sleep(1)
        assert "that answer nothing" in session.failure


@in_virtual_time
async def test_a_server_that_only_lists_its_tools_again_is_stopped_as_unused() -> None:
    server = ScriptedServer()
    async with running(server) as session:
        for _ in range(round(IDLE_S / 60) + 1):
            server.print(method="notifications/tools/list_changed")
            await LoopClock().sleep(60)
        assert session.failure == STOPPED
        assert server.requests("tools/list") > 5


@in_virtual_time
async def test_large_lines_are_reduced_and_others_are_not() -> None:
    server, reducer = ScriptedServer(), CountingReducer()
    large = {"content": [{"type": "text", "text": "x" * LARGE_LINE_BYTES}]}

    def answered(message: dict[str, Any]) -> dict[str, Any] | None:
        if message.get("method") != "tools/call":
            return lists_nothing(message)
        is_large = message["params"]["name"] == "large"
        return {**large, "values": [0] * 1000} if is_large else {"content": []}

    server.answers = answered
    async with running(server, reducer) as session:
        assert await session.call("small", {}, lambda _: None) == {"content": []}
        assert reducer.sizes_bytes == []
        assert await session.call("large", {}, lambda _: None) == large
        assert len(reducer.sizes_bytes) == 1


@in_virtual_time
async def test_a_server_that_never_answers_the_opening_fails_in_time() -> None:
    began_s = LoopClock().monotonic()
    async with running(ScriptedServer(lambda _: None)) as session:
        assert session.failure == f"it did not answer initialize within {OPENING_S:g} s"
        assert LoopClock().monotonic() - began_s <= OPENING_S + 1
