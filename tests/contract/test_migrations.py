from pathlib import Path

import pytest
from sqlalchemy import MetaData

import chatd.store.schema
import gateway.schema
import mcpgateway.schema
from parley.postgres import drift, migrate
from support.postgres import empty_database, postgres

__all__ = ["empty_database", "postgres"]

SCHEMAS = {
    "chat": (chatd.store.schema.MIGRATIONS, chatd.store.schema.metadata),
    "identity": (gateway.schema.MIGRATIONS, gateway.schema.metadata),
    "mcp": (mcpgateway.schema.MIGRATIONS, mcpgateway.schema.metadata),
}


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
async def test_the_migrated_database_is_what_the_tables_say(
    schema: str, empty_database: str
) -> None:
    scripts: Path
    metadata: MetaData
    scripts, metadata = SCHEMAS[schema]
    await migrate(empty_database, schema=schema, scripts=scripts)
    assert await drift(empty_database, metadata, schema) == ()
