"""Listings with servers that fail: answered from what is known, and asked again beside them."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.listing_failures import PAUSE_FIRST_S
from mcpgateway.runtime.stored_catalogues import StoredCatalogues
from mcpgateway.runtime.tool_listing import LISTED_AT_ONCE_MAX as TURNS
from mcpgateway.runtime.tool_listing import Listing, ToolListing
from mcpgateway.servers.access import Access, CallerContext
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import Catalogue, ChatContext, Reason, Server, ServerId, ServerState
from mcpgateway.servers.errors import NeedsConnect, UpstreamFailed
from mcpgateway.servers.groups import GatewayGroups
from mcpgateway.servers.health import ServerHealth
from mcpgateway.servers.known_servers import KnownServers
from mcpgateway.servers.store import Servers
from mcpgateway.servers.user_values import UserValues
from parley.clock import FakeClock
from parley.postgres import Database
from parley.rpc import Channels
from parley.secrets import Keyring, SecretBox
from support.mcpgateway.scripted_upstream import ScriptedUpstream
from support.mcpgateway.values import a_server, a_tool, new_id

WELL = ServerId("01900000-0000-7000-8000-000000000001")
DEAD = ServerId("01900000-0000-7000-8000-000000000002")
TOOLS = Catalogue({"echo": a_tool("echo")}, 1, "", None)
DOWN = UpstreamFailed(Reason.CONNECT_FAILED, "it is down")
ANN = CallerContext("ann", ChatContext("chat-1", "chat-1"))


class NoLogins:
    """Nobody has a login."""

    async def headers(self, server: Server, user_id: str) -> Mapping[str, str]:
        raise NeedsConnect(server.id)


@dataclass(slots=True)
class Lab:
    """Two servers in a listing, of which one can fail."""

    listing: ToolListing
    catalogues: CatalogueCache
    answers: dict[ServerId, Catalogue | UpstreamFailed | asyncio.Event]
    upstream: ScriptedUpstream
    clock: FakeClock
    changed: list[str] = field(default_factory=list)

    async def list(self, wait_s: float = 10.0) -> Listing:
        return await self.listing.list(ANN, [WELL, DEAD], wait_s=wait_s, allow_stale=True)

    async def states(self) -> tuple[ServerState, ...]:
        return tuple(each.state for each in (await self.list()).outcomes)

    @property
    def asked(self) -> Counter[ServerId]:
        return Counter(self.upstream.listed)


@pytest.fixture
async def lab(database: Database, servers: Servers) -> Lab:
    for server_id, slug in ((WELL, "well"), (DEAD, "dead")):
        await servers.ensure(server_id, a_server(slug=slug).settings)
    answers: dict[ServerId, Catalogue | UpstreamFailed | asyncio.Event] = {WELL: TOOLS, DEAD: DOWN}
    clock, upstream, changed = FakeClock(), ScriptedUpstream(answers), list[str]()
    catalogues = CatalogueCache(
        upstream,
        Definitions(database, new_id),
        ServerHealth(database, clock),
        StoredCatalogues(database, clock),
        clock,
        changed.append,
    )
    known = KnownServers(servers, clock)
    values = UserValues(database, SecretBox(Keyring.generate()))
    groups = GatewayGroups(Channels((), lambda _: pytest.fail("asks for groups")), clock)
    access = Access(known, values, groups, NoLogins())
    listing = ToolListing(known, access, catalogues)
    return Lab(listing, catalogues, answers, upstream, clock, changed)


BOTH = (ServerState.READY, ServerState.READY)
ONE = (ServerState.READY, ServerState.UNAVAILABLE)


async def test_listings_ask_no_server_that_failed_lately(lab: Lab) -> None:
    first = await lab.list()
    for _ in range(20):
        assert await lab.list() == first
    assert lab.asked == {WELL: 1, DEAD: 1}
    dead = first.outcomes[1]
    assert (dead.state, dead.reason, dead.message) == (
        ServerState.UNAVAILABLE,
        Reason.CONNECT_FAILED,
        "it is down",
    )
    assert [tool.model_name for tool in first.tools] == ["well__echo"]


async def test_a_server_that_failed_is_asked_again_beside_the_listings(lab: Lab) -> None:
    assert await lab.states() == ONE
    lab.answers[DEAD] = TOOLS
    lab.clock.advance(PAUSE_FIRST_S)
    # This listing wants it again, and does not ask it.
    assert (await lab.states(), lab.asked[DEAD]) == (ONE, 1)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        asking = tasks.create_task(lab.catalogues.ask_failed())
        while not lab.changed:
            await lab.list()
        asking.cancel()
    assert (lab.asked[DEAD], lab.changed, await lab.states()) == (2, [DEAD], BOTH)


async def test_a_silent_server_is_waited_for_once(lab: Lab) -> None:
    lab.answers[DEAD] = asyncio.Event()
    listed = await lab.list(wait_s=2)
    assert [each.reason for each in listed.outcomes] == [None, Reason.CONNECT_TIMEOUT]
    async with asyncio.timeout(5):
        for _ in range(20):
            assert [each.reason for each in (await lab.list()).outcomes] == [
                None,
                Reason.CONNECT_TIMEOUT,
            ]
    assert lab.asked[DEAD] == 1


async def test_a_server_that_was_not_asked_is_not_known_as_failed(lab: Lab) -> None:
    lab.answers[DEAD] = asyncio.Event()
    async with asyncio.timeout(20), asyncio.TaskGroup() as tasks:
        callers = [CallerContext(f"user-{number}", ANN.context) for number in range(TURNS)]
        silent = [
            tasks.create_task(lab.listing.list(caller, [DEAD], wait_s=10, allow_stale=True))
            for caller in callers
        ]
        while lab.asked[DEAD] < TURNS:
            await asyncio.wait(silent, timeout=0.01)
        # All turns are taken, and this listing gets none.
        waited = await lab.listing.list(ANN, [WELL], wait_s=0.05, allow_stale=True)
        assert (waited.outcomes[0].reason, lab.asked[WELL]) == (Reason.CONNECT_TIMEOUT, 0)
        for task in silent:
            task.cancel()
    listed = await lab.listing.list(ANN, [WELL], wait_s=10, allow_stale=True)
    assert listed.outcomes[0].state is ServerState.READY


async def test_tools_that_are_known_stay_listed_while_their_server_fails(lab: Lab) -> None:
    lab.answers[DEAD] = TOOLS
    assert await lab.states() == BOTH
    lab.answers[DEAD] = DOWN
    lab.catalogues.expire(DEAD)
    failing = await lab.list()
    assert [tool.model_name for tool in failing.tools] == ["dead__echo", "well__echo"]
    assert (failing.outcomes[1].state, failing.outcomes[1].is_stale) == (
        ServerState.UNAVAILABLE,
        True,
    )


async def test_a_server_that_was_seen_to_work_is_asked_by_the_next_listing(lab: Lab) -> None:
    assert await lab.states() == ONE
    lab.answers[DEAD] = TOOLS
    lab.catalogues.retry(DEAD)
    assert await lab.states() == BOTH
