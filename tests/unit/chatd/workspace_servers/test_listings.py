"""Listings of workspace servers that are kept, and servers that lose their trust."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from chatd.content.domain.tool_servers import server_notices
from chatd.workspace_servers.domain.definition import Definitions, ServerDefinition
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.state import ServerState
from chatd.workspace_servers.engine.servers import LISTED_BYTES_MAX, TTL_S, WorkspaceServers
from chatd.workspace_servers.engine.sessions import ServerSessions
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.tasks import BackgroundTasks
from support.chatd.workspace_servers.counting_reducer import CountingReducer
from support.chatd.workspace_servers.in_memory_trust import InMemoryTrustedServers
from support.chatd.workspace_servers.scripted_server import EachScripted
from support.chatd.workspaces.workspace_calls import ANN, CHAT
from support.host.supervised import supervision
from support.host.virtual_time import LoopClock, in_virtual_time

PLACE = ServerPlace(CHAT, ANN, WorkspaceLocation("node:1", "workspace"), is_read_only=False)
DEFINITION = ServerDefinition("plain", "run", digest="digest")


@dataclass(slots=True)
class OneDefinition:
    """Every workspace defines the same server."""

    definition: ServerDefinition = field(default=DEFINITION)

    async def read(self, place: ServerPlace) -> Definitions:
        return Definitions((self.definition,))


@dataclass(frozen=True, slots=True)
class Served:
    """The servers of workspaces in one process."""

    servers: WorkspaceServers
    sessions: ServerSessions
    processes: EachScripted
    published: list[str]


@asynccontextmanager
async def served(
    trusted: InMemoryTrustedServers, files: OneDefinition, processes: EachScripted
) -> AsyncIterator[Served]:
    clock = LoopClock()
    async with BackgroundTasks(supervision(clock)) as tasks:
        sessions = ServerSessions(processes, tasks, clock, CountingReducer())
        try:
            published: list[str] = []
            servers = WorkspaceServers(files, trusted, sessions, clock, published.append)
            yield Served(servers, sessions, processes, published)
        finally:
            sessions.close()


def lists_a_large_tool(message: dict[str, Any]) -> dict[str, Any] | None:
    """Answer with tools whose schemas take almost as much as they may."""
    match message.get("method"):
        case "initialize":
            return {}
        case "tools/list":
            schema = {"title": "x" * 60_000}
            return {"tools": [{"name": f"tool{n}", "inputSchema": schema} for n in range(4)]}
        case _:
            return None


@in_virtual_time
async def test_listings_are_kept_up_to_their_bytes() -> None:
    trusted, processes = InMemoryTrustedServers(), EachScripted(lists_a_large_tool)
    count = LISTED_BYTES_MAX // (4 * 4 * 60_000) + 2
    async with served(trusted, OneDefinition(), processes) as one:
        for number in range(count):
            location = replace(PLACE.location, workspace_id=f"workspace{number}")
            place = replace(PLACE, location=location)
            await trusted.trust(location.workspace_id, "plain", "digest", ANN.id)
            assert len(await one.servers.offered(place, "generation")) == 4
            one.sessions.close()
            await LoopClock().sleep(1)
        first = replace(PLACE, location=replace(PLACE.location, workspace_id="workspace0"))
        await one.servers.offered(first, "generation")
        assert len(processes.started) == count + 1


def lists_tools_that_cannot_be_offered(message: dict[str, Any]) -> dict[str, Any] | None:
    """Answer with one tool, and three entries that are none."""
    match message.get("method"):
        case "initialize":
            return {}
        case "tools/list":
            large = {"name": "large", "inputSchema": {"title": "x" * 100_000}}
            return {"tools": [{"name": "plain", "inputSchema": {}}, large, "none", {"name": "a"}]}
        case _:
            return None


@in_virtual_time
async def test_tools_that_cannot_be_offered_are_counted_in_a_notice() -> None:
    trusted = InMemoryTrustedServers()
    await trusted.trust("workspace", "plain", "digest", ANN.id)
    processes = EachScripted(lists_tools_that_cannot_be_offered)
    async with served(trusted, OneDefinition(), processes) as one:
        specs = await one.servers.offered(PLACE, "generation")
        notices = server_notices(one.servers.reports(CHAT))
    assert [spec.original_name for spec in specs] == ["plain"]
    assert notices == (
        "3 tools of the MCP server plain cannot be used: invalid or too large definitions.",
    )


@in_virtual_time
async def test_a_server_that_no_turn_has_used_yet_shows_its_tools() -> None:
    trusted = InMemoryTrustedServers()
    await trusted.trust("workspace", "plain", "digest", ANN.id)
    processes = EachScripted(lists_tools_that_cannot_be_offered)
    async with served(trusted, OneDefinition(), processes) as one:
        await one.servers.trusted_session(PLACE, "plain")
        (status,), _ = await one.servers.statuses(PLACE)
    assert (status.state, status.tool_names) == (ServerState.RUNNING, ("plain",))


@in_virtual_time
async def test_a_server_that_another_process_trusts_no_longer_is_stopped() -> None:
    trusted, files = InMemoryTrustedServers(), OneDefinition()
    await trusted.trust("workspace", "plain", "digest", ANN.id)
    async with (
        served(trusted, files, EachScripted()) as one,
        served(trusted, files, EachScripted()) as other,
    ):
        await one.servers.offered(PLACE, "generation")
        session = await one.servers.session(PLACE, "plain", "digest")
        await one.servers.on_notice("workspace")
        assert not session.stopping.is_set()
        await other.servers.untrust(PLACE, "plain", ANN.id)
        assert other.published == ["workspace"]
        await one.servers.on_resync()
        assert session.stopping.is_set()
        assert await one.servers.offered(PLACE, "generation") == ()


@in_virtual_time
async def test_a_server_of_an_earlier_definition_is_stopped_when_the_new_one_is_read() -> None:
    trusted, files = InMemoryTrustedServers(), OneDefinition()
    await trusted.trust("workspace", "plain", "digest", ANN.id)
    async with served(trusted, files, EachScripted()) as one:
        await one.servers.offered(PLACE, "generation")
        session = await one.servers.session(PLACE, "plain", "digest")
        files.definition = replace(DEFINITION, digest="other")
        await LoopClock().sleep(TTL_S)
        assert await one.servers.offered(PLACE, "generation") == ()
        assert session.stopping.is_set()
