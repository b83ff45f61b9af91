"""A migrated database, real MCP servers and a whole mcpgateway."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from mcpgateway.runtime.journal import Journal
from mcpgateway.servers.schema import MIGRATIONS, SCHEMA
from mcpgateway.servers.store import Servers
from parley.postgres import Database, migrate
from parley.secrets import Keyring, SecretBox
from support.database.postgres import TestPostgres, postgres
from support.host.ports import free_port
from support.mcpgateway.gateway import McpGateway, mcp_gateway
from support.mcpgateway.servers import demo_process, until_listening
from support.mcpgateway.values import new_id

__all__ = ["postgres"]

GATEWAY_ID = "01900000-0000-7000-8000-0000000000aa"


async def migrate_mcp(url: str) -> None:
    await migrate(url, schema=SCHEMA, scripts=MIGRATIONS)


@pytest.fixture
async def mcp_database(postgres: TestPostgres) -> AsyncIterator[str]:
    """The URL of a database with the schema `mcp`."""
    async with postgres.database(template="mcp", prepare=migrate_mcp) as url:
        yield url


@pytest.fixture
async def database(mcp_database: str) -> AsyncIterator[Database]:
    async with Database.open(mcp_database, application_name="test", connections_max=8) as opened:
        yield opened


@pytest.fixture
async def journal(database: Database) -> Journal:
    return await Journal.open(database, GATEWAY_ID)


@pytest.fixture
def servers(database: Database) -> Servers:
    return Servers(database, SecretBox(Keyring.generate()), new_id)


@pytest.fixture(scope="session")
def demo_port() -> Iterator[int]:
    """The port of the demo's server, started once."""
    port = free_port()
    with demo_process(port):
        yield port


@pytest.fixture
async def demo_url(demo_port: int) -> str:
    await until_listening(demo_port)
    return f"http://127.0.0.1:{demo_port}/mcp"


@pytest.fixture
async def gateway(tmp_path: Path, mcp_database: str, demo_url: str) -> AsyncIterator[McpGateway]:
    """A running mcpgateway that offers the demo's server."""
    async with mcp_gateway(tmp_path, mcp_database, demo_url=demo_url) as running:
        yield running
