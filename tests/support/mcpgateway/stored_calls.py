"""Calls in the database of mcpgateway, made older than they are."""

from mcpgateway.runtime.journal import Journal
from parley.postgres import Database


async def delete_acknowledged(database: Database) -> None:
    """Delete the rows of acknowledged calls, as if hours had passed."""
    journal = await Journal.open(database, "01900000-0000-7000-8000-0000000000bb")
    await database.pool.execute(
        "UPDATE mcp.calls SET acknowledged_at = acknowledged_at - interval '2 hours'"
    )
    await journal.delete_expired()
    await database.pool.execute("UPDATE mcp.calls SET pruned_at = pruned_at - interval '1 hour'")
    await journal.delete_expired()
    assert await database.pool.fetchval("SELECT count(*) FROM mcp.calls") == 0
