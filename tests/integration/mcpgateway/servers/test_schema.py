"""The schema as migrations make it and as the code declares it."""

from mcpgateway.servers.schema import SCHEMA, metadata
from support.database.schema_drift import drift


async def test_migrations_make_exactly_the_declared_tables(mcp_database: str) -> None:
    assert await drift(mcp_database, metadata, SCHEMA) == ()
