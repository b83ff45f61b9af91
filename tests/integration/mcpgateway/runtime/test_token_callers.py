"""What callers with a service token may ask about calls."""

import asyncio
from collections.abc import Mapping

import pytest

from mcpgateway.runtime.call_executor import CallExecutor
from mcpgateway.runtime.call_starter import CallStarter
from mcpgateway.runtime.catalogues import CatalogueCache
from mcpgateway.runtime.journal import Journal
from mcpgateway.runtime.servicer import RuntimeServicer
from mcpgateway.runtime.start_queue import StartQueue
from mcpgateway.runtime.stored_catalogues import StoredCatalogues
from mcpgateway.runtime.tool_listing import ToolListing
from mcpgateway.servers.access import Access
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import Server
from mcpgateway.servers.errors import InvalidRequest, NeedsConnect
from mcpgateway.servers.groups import GatewayGroups
from mcpgateway.servers.health import ServerHealth
from mcpgateway.servers.known_servers import KnownServers
from mcpgateway.servers.store import Servers
from mcpgateway.servers.user_values import UserValues
from parley.api.mcp.v1 import runtime_service_pb2 as api
from parley.api.mcp.v1 import tool_pb2
from parley.clock import FakeClock
from parley.identity import Caller, Role, User, UserId
from parley.postgres import Database
from parley.rpc import Channels
from parley.rpc.call import SERVED_CALL, ServedCall
from parley.secrets import Keyring, SecretBox
from support.mcpgateway.scripted_upstream import ScriptedUpstream
from support.mcpgateway.values import an_order, new_id

TOKEN = Caller(None, User(UserId("ann"), Role.MEMBER), frozenset({"mcp:call"}), "1", "robot")


class NoLogins:
    """Nobody has a login."""

    async def headers(self, server: Server, user_id: str) -> Mapping[str, str]:
        raise NeedsConnect(server.id)


@pytest.fixture
def servicer(journal: Journal, servers: Servers, database: Database) -> RuntimeServicer:
    clock, upstream = FakeClock(), ScriptedUpstream()
    definitions, health = Definitions(database, new_id), ServerHealth(database, clock)
    catalogues = CatalogueCache(
        upstream, definitions, health, StoredCatalogues(database, clock), clock, lambda _: None
    )
    executor = CallExecutor(journal, upstream, clock, asyncio.TaskGroup())
    values = UserValues(database, SecretBox(Keyring.generate()))
    groups = GatewayGroups(Channels((), lambda _: pytest.fail("asks for groups")), clock)
    known = KnownServers(servers, clock)
    access = Access(known, values, groups, NoLogins())
    listing = ToolListing(known, access, catalogues)
    starter = CallStarter(executor, StartQueue(), known)
    return RuntimeServicer(known, access, listing, catalogues, journal, executor, starter)


async def asked(servicer: RuntimeServicer, key: api.CallKey) -> api.GetCallResponse:
    """Ask where a call is as the token's holder."""
    SERVED_CALL.set(ServedCall(TOKEN, 0.0, "mcp.Runtime/GetCall"))
    return await servicer.GetCall(api.GetCallRequest(key=key), None)


async def test_a_token_asks_about_calls_without_a_chat(
    servicer: RuntimeServicer, journal: Journal
) -> None:
    await journal.begin(an_order("mine", caller="token:1", chat_id="", owner_epoch=0))

    response = await asked(
        servicer, api.CallKey(execution_id="mine", journal_generation=journal.generation)
    )

    assert response.state == tool_pb2.CALL_STATE_RUNNING


async def test_a_token_cannot_shut_the_owner_of_a_chat_out(
    servicer: RuntimeServicer, journal: Journal
) -> None:
    key = api.CallKey(
        execution_id="x",
        chat_id="chat-1",
        owner_epoch=99,
        journal_generation=journal.generation,
    )

    with pytest.raises(InvalidRequest) as caught:
        await asked(servicer, key)

    assert set(caught.value.problems) == {"key.chat_id"}
    assert (await journal.begin(an_order(owner_epoch=1)))[1]
