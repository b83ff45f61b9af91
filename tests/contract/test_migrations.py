import re
from pathlib import Path

import pytest
from sqlalchemy import MetaData

import chatd.schema
import gateway.identity.store.schema
import mcpgateway.servers.schema
from parley.postgres import migrate
from support.database.postgres import empty_database, postgres
from support.database.schema_drift import drift

__all__ = ["empty_database", "postgres"]

SCHEMAS = {
    "chat": (chatd.schema.MIGRATIONS, chatd.schema.metadata),
    "identity": (gateway.identity.store.schema.MIGRATIONS, gateway.identity.store.schema.metadata),
    "mcp": (mcpgateway.servers.schema.MIGRATIONS, mcpgateway.servers.schema.metadata),
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


@pytest.mark.parametrize("schema", sorted(SCHEMAS))
def test_the_name_of_a_script_begins_with_its_revision_which_follows_the_one_before(
    schema: str,
) -> None:
    scripts: Path = SCHEMAS[schema][0]
    before = "None"
    for path in sorted((scripts / "versions").glob("*.py")):
        found = dict(re.findall(r"^((?:down_)?revision) = (\S+)$", path.read_text(), re.M))
        revision = f'"{path.stem.partition("_")[0]}"'
        assert found == {"revision": revision, "down_revision": before}, path
        before = revision
