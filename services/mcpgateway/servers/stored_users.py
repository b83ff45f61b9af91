"""Whose logins and values are stored."""

from typing import Final

from parley.postgres import Database

PAGE_SIZE: Final = 500

# May run: process.
_PAGE = """
    SELECT user_id FROM (
        SELECT user_id FROM mcp.grants
        UNION SELECT user_id FROM mcp.user_values
        UNION SELECT user_id FROM mcp.oauth_flows
        UNION SELECT user_id FROM mcp.catalogues
    ) AS stored
    WHERE user_id > $1 ORDER BY user_id LIMIT $2
"""


class StoredUsers:
    """The users of whom anything is stored."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def page(self, after: str) -> tuple[str, ...]:
        """Return the ids of users behind one in order; none at the end."""
        rows = await self._database.pool.fetch(_PAGE, after, PAGE_SIZE)
        return tuple(row["user_id"] for row in rows)
