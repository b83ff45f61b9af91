"""A change of a server and its record exist together or not at all."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import asyncpg
import pytest
from sqlalchemy.exc import DBAPIError

from mcpgateway.servers.changes import ChangeKind, ServerChanges
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import Credentials, Server, ServerId, ServerSettings
from mcpgateway.servers.store import RequestRecord, Servers
from parley.postgres import Database
from support.mcpgateway.values import SERVER_ID, a_tool, new_id

SETTINGS = ServerSettings(slug="wiki", display_name="Wiki", url="https://mcp.example/mcp")
OTHER_ID = ServerId("01900000-0000-7000-8000-000000000002")
COUNTS = """
    SELECT (SELECT count(*) FROM mcp.servers) AS servers,
        (SELECT count(*) FROM mcp.audit_outbox) AS events,
        (SELECT count(*) FROM mcp.tool_definitions WHERE is_approved) AS approved,
        (SELECT sum(version) FROM mcp.servers) AS versions
"""


def a_request(request_id: str) -> RequestRecord:
    return RequestRecord("gateway:ann", request_id, b"body")


def renamed(before: Server, _: Credentials) -> tuple[ServerSettings, Credentials | None]:
    return replace(before.settings, display_name="Other"), None


async def create(servers: Servers, definitions: Definitions, server: Server) -> object:
    other = replace(SETTINGS, slug="other")
    return await servers.create(OTHER_ID, other, Credentials(), a_request("r2"))


async def update(servers: Servers, definitions: Definitions, server: Server) -> object:
    return await servers.update(server.id, 0, renamed, a_request("r3"))


async def delete(servers: Servers, definitions: Definitions, server: Server) -> object:
    return await servers.delete(server.id)


async def approve(servers: Servers, definitions: Definitions, server: Server) -> object:
    changed = replace(a_tool("search"), digest="2")
    await definitions.quarantined(server, {"search": changed})
    await definitions.approve(server, [("search", "2")], "ann")
    return server


Change = Callable[[Servers, Definitions, Server], Awaitable[object]]
CHANGES: Mapping[ChangeKind, Change] = {
    ChangeKind.CREATED: create,
    ChangeKind.UPDATED: update,
    ChangeKind.DELETED: delete,
    ChangeKind.TOOLS_APPROVED: approve,
}


@asynccontextmanager
async def records_refused(database: Database) -> AsyncIterator[None]:
    """Let the database refuse records of changes."""
    await database.pool.execute(
        "ALTER TABLE mcp.server_changes ADD CONSTRAINT refused CHECK (false) NOT VALID"
    )
    yield
    await database.pool.execute("ALTER TABLE mcp.server_changes DROP CONSTRAINT refused")


@pytest.mark.parametrize("kind", ChangeKind)
async def test_a_change_that_cannot_be_recorded_is_not_made(
    kind: ChangeKind, servers: Servers, database: Database
) -> None:
    definitions = Definitions(database, new_id)
    server = await servers.create(SERVER_ID, SETTINGS, Credentials(), a_request("r1"))
    await definitions.quarantined(server, {"search": a_tool("search")})
    before = await database.pool.fetchrow(COUNTS)

    async with records_refused(database):
        with pytest.raises((DBAPIError, asyncpg.PostgresError)):
            await CHANGES[kind](servers, definitions, server)
    unchanged = await database.pool.fetchrow(COUNTS)
    await CHANGES[kind](servers, definitions, server)
    changes = await ServerChanges(database).page(
        OTHER_ID if kind is ChangeKind.CREATED else server.id, None, 10
    )

    assert unchanged == before
    assert changes[0].kind is kind
