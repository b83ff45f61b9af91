"""Catalogues that outlive a restart."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mcpgateway.runtime.catalogues import TTL_MIN_S, CatalogueCache
from mcpgateway.runtime.stored_catalogues import CONTENT_BYTES_MAX, StoredCatalogues
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import Catalogue, Reason, Target
from mcpgateway.servers.errors import UpstreamFailed
from mcpgateway.servers.health import ServerHealth
from mcpgateway.servers.store import Servers
from parley.clock import FakeClock
from parley.postgres import Database
from support.mcpgateway.scripted_upstream import ScriptedUpstream
from support.mcpgateway.values import SERVER_ID, a_server, a_target, a_tool, new_id

TOOLS = Catalogue({"echo": a_tool("echo")}, 1, "Use it well.", None)
DOWN = UpstreamFailed(Reason.CONNECT_FAILED, "it is down")


@pytest.fixture
async def target(servers: Servers) -> Target:
    await servers.ensure(SERVER_ID, a_server().settings)
    return a_target((await servers.find([SERVER_ID]))[SERVER_ID], user_id="ann")


def started(database: Database, upstream: ScriptedUpstream, clock: FakeClock) -> CatalogueCache:
    """Return the cache of a process that has just started."""
    return CatalogueCache(
        upstream,
        Definitions(database, new_id),
        ServerHealth(database, clock),
        StoredCatalogues(database, clock),
        clock,
        lambda _: None,
    )


async def test_the_first_listing_after_a_restart_asks_no_server(
    database: Database, target: Target
) -> None:
    clock = FakeClock()
    before = await started(database, ScriptedUpstream({SERVER_ID: TOOLS}), clock).current(target)

    down = ScriptedUpstream({SERVER_ID: DOWN})
    restarted = started(database, down, clock)
    after = await restarted.current(target)

    assert (after.catalogue, after.fetched_at) == (TOOLS, before.fetched_at)
    clock.advance(TTL_MIN_S)
    with pytest.raises(UpstreamFailed):
        await restarted.current(target)
    assert restarted.known(target) == after


async def test_users_with_the_same_tools_share_one_catalogue_in_memory(
    database: Database, target: Target
) -> None:
    others = Catalogue({"other": a_tool("other")}, 1, "", None)
    catalogues = {SERVER_ID: TOOLS}
    cache = started(database, ScriptedUpstream(catalogues), FakeClock())
    ann = await cache.current(target)
    catalogues[SERVER_ID] = replace(TOOLS)
    bob = await cache.current(a_target(target.server, user_id="bob"))
    catalogues[SERVER_ID] = others
    cid = await cache.current(a_target(target.server, user_id="cid"))

    assert bob.catalogue is ann.catalogue
    assert cid.catalogue == others
    cache.forget_user("ann")
    assert (cache.known(target), cache.known(a_target(target.server, user_id="bob"))) == (None, bob)


async def test_a_server_that_invents_tools_is_stored_up_to_a_bound(
    database: Database, target: Target
) -> None:
    definitions = Definitions(database, new_id, definitions_max=3)
    for round_number in range(3):
        names = [f"tool-{round_number}-{number}" for number in range(2)]
        quarantined = await definitions.quarantined(
            target.server, {name: a_tool(name) for name in names}
        )
        # Beyond the bound nothing is approved by itself.
        assert len(quarantined) == (0, 1, 2)[round_number]
    assert await database.pool.fetchval("SELECT count(*) FROM mcp.tool_definitions") == 3
    assert await definitions.quarantined(target.server, {"tool-0-0": a_tool("tool-0-0")}) == set()


async def test_a_stored_catalogue_serves_only_its_user_and_version(
    database: Database, target: Target
) -> None:
    clock = FakeClock()
    await started(database, ScriptedUpstream({SERVER_ID: TOOLS}), clock).current(target)
    stored = StoredCatalogues(database, clock)

    of_bob = a_target(target.server, user_id="bob")
    changed = a_target(replace(target.server, version=2), user_id="ann")
    assert [await stored.find(each) for each in (of_bob, changed)] == [None, None]
    await stored.delete_of_user("ann")
    assert await stored.find(target) is None


async def test_stored_catalogues_are_bounded(database: Database, target: Target) -> None:
    stored = StoredCatalogues(database, FakeClock(), stored_max=2)
    now = await database.pool.fetchval("SELECT now()")
    users = [a_target(target.server, user_id=user_id) for user_id in ("old", "ann", "bob", "cid")]
    for place, each in enumerate(users):
        age = timedelta(days=8) if place == 0 else timedelta(hours=9 - place)
        await stored.put(each, TOOLS, now - age)
    large = Catalogue({}, 0, "x" * CONTENT_BYTES_MAX, None)
    await stored.put(a_target(target.server, user_id="large"), large, now)
    await stored.delete_old()

    left = await database.pool.fetch("SELECT user_id FROM mcp.catalogues ORDER BY 1")
    assert [row["user_id"] for row in left] == ["bob", "cid"]


async def test_what_is_stored_is_what_a_user_was_offered_last(
    database: Database, target: Target
) -> None:
    stored = StoredCatalogues(database, FakeClock())
    now = await database.pool.fetchval("SELECT now()")
    other_login = replace(target, headers={"authorization": "another"})
    fewer = Catalogue({}, 1, "", None)
    for each, catalogue in ((target, TOOLS), (other_login, fewer), (target, TOOLS)):
        await stored.put(each, catalogue, now)

    found = await stored.find(target)
    assert found is not None
    assert found.catalogue == TOOLS
