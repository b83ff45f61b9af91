"""All that the database of a mcpgateway holds, to search it for secrets."""

from mcpgateway.servers.schema import metadata
from parley.postgres import Database


async def stored_text(database: Database) -> str:
    """Return every row of the schema, as PostgreSQL prints it and with bytes as text."""
    found: list[str] = []
    for table in metadata.sorted_tables:
        rows = await database.pool.fetch(f"SELECT * FROM {table.fullname}")
        for row in rows:
            for value in row.values():
                found.append(value.decode("latin-1") if isinstance(value, bytes) else str(value))
    return "".join(found)
