"""Writes the names of all constraints and unique indexes, as the migrations make them.

One module for each schema. The migrations run in a PostgreSQL of their own, so nothing of a service
is imported: a table may refer to a name as soon as this has written it.
"""

import asyncio
import sys
import tempfile
from pathlib import Path

import asyncpg

from parley.postgres import EmbeddedServer, migrate

ROOT = Path(__file__).resolve().parent.parent
SERVICES = ROOT / "services"
#: Schema -> the service that owns it, and the module with its names.
SCHEMAS = {
    "chat": ("chatd", "primitives/store/constraints.py"),
    "identity": ("gateway", "constraints.py"),
    "mcp": ("mcpgateway", "servers/constraints.py"),
}
# A violation of a unique index is reported like one of a constraint. NOT NULL has no name of ours.
SELECT_NAMES = """
    SELECT conname AS name FROM pg_constraint
    WHERE connamespace = $1::text::regnamespace AND contype <> 'n'
        AND conrelid <> ($1::text || '.alembic_version')::regclass
    UNION
    SELECT indexrelid::regclass::name FROM pg_index
    JOIN pg_class ON pg_class.oid = indexrelid
    WHERE indisunique AND relnamespace = $1::text::regnamespace
        AND indrelid <> ($1::text || '.alembic_version')::regclass
"""


async def main() -> int:
    """Write the modules, or with --check tell whether they are as they would be written."""
    stale = []
    with tempfile.TemporaryDirectory(prefix="parley-constraints-") as directory:
        async with EmbeddedServer(Path(directory), is_durable=False).running() as server:
            for schema, (service, module) in SCHEMAS.items():
                path = SERVICES / service / module
                text = module_text(schema, await names(server.admin_url(), schema, service))
                if not path.exists() or path.read_text() != text:
                    stale.append(path)
                    if "--check" not in sys.argv[1:]:
                        path.write_text(text)
    if stale and "--check" in sys.argv[1:]:
        listed = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        print(f"stale: {listed}; run scripts/constraints.py", file=sys.stderr)
        return 1
    return 0


async def names(url: str, schema: str, service: str) -> list[str]:
    """Migrate a schema and return the names in it."""
    await migrate(url, schema=schema, scripts=SERVICES / service / "migrations")
    connection = await asyncpg.connect(url)
    try:
        # Without a search path, names of other schemas would come with theirs.
        await connection.execute(f"SET search_path = {schema}")
        # Sorted here: the order of the database depends on its collation.
        return sorted(row["name"] for row in await connection.fetch(SELECT_NAMES, schema))
    finally:
        await connection.close()


def module_text(schema: str, names: list[str]) -> str:
    """Return the module with the names of a schema."""
    return "\n".join(
        (
            f'"""Names in the schema `{schema}`, written by scripts/constraints.py."""',
            "",
            "from enum import StrEnum",
            "",
            "",
            "class Constraint(StrEnum):",
            '    """Every constraint and unique index of the schema, by its name there."""',
            "",
            *(f'    {name.upper()} = "{name}"' for name in names),
            "",
        )
    )


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
