"""Values that users give for headers of servers: encrypted, and opened only for a request."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID, uuid5

import msgspec
from sqlalchemy import delete, func, select
from sqlalchemy.dialects.postgresql import insert

from mcpgateway.servers.domain import Server
from mcpgateway.servers.schema import user_values
from mcpgateway.servers.store import VALUES_COLUMN, VALUES_TABLE
from parley.postgres import Database
from parley.secrets import Sealed, SecretBox


class UserValues:
    """The stored values; every statement names the user whose they are."""

    def __init__(self, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    # May run: user.
    async def put(self, server: Server, user_id: str, values: Mapping[str, str]) -> None:
        """Store the values of a user, in place of earlier ones."""
        row_id = _row_id(server, user_id)
        plain = msgspec.json.encode(values)
        sealed = self._box.seal(plain, table=VALUES_TABLE, column=VALUES_COLUMN, row_id=row_id)
        stored = {
            "header_names": sorted(values),
            "sealed": sealed.ciphertext,
            "key_id": sealed.key_id,
            "updated_at": func.now(),
        }
        statement = insert(user_values).values(
            id=row_id, server_id=server.id, user_id=user_id, **stored
        )
        statement = statement.on_conflict_do_update(index_elements=["id"], set_=stored)
        async with self._database.transaction() as connection:
            await connection.execute(statement)

    # May run: user.
    async def delete(self, server_id: str, user_id: str) -> None:
        """Delete the values of a user for a server."""
        statement = delete(user_values).where(
            user_values.c.server_id == server_id, user_values.c.user_id == user_id
        )
        async with self._database.transaction() as connection:
            await connection.execute(statement)

    # May run: process.
    async def delete_of_user(self, user_id: str) -> None:
        """Delete all values of a user who is gone."""
        async with self._database.transaction() as connection:
            await connection.execute(delete(user_values).where(user_values.c.user_id == user_id))

    # May run: user.
    async def headers_of(
        self, user_id: str, server_ids: Sequence[str]
    ) -> Mapping[str, tuple[str, ...]]:
        """Return the headers for which a user has stored values, by server."""
        if not user_id or not server_ids:
            return {}
        statement = select(user_values.c.server_id, user_values.c.header_names).where(
            user_values.c.user_id == user_id, user_values.c.server_id.in_(server_ids)
        )
        async with self._database.reading() as connection:
            rows = await connection.execute(statement)
            return {row.server_id: tuple(row.header_names) for row in rows}

    # May run: user.
    async def opened(self, server: Server, user_id: str) -> Mapping[str, str]:
        """Return the values of a user, decrypted; only those for slots that the server has.

        Raises:
            SecretsError: They cannot be decrypted with the keys of this process.
        """
        statement = select(user_values.c.id, user_values.c.sealed, user_values.c.key_id).where(
            user_values.c.user_id == user_id, user_values.c.server_id == server.id
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(statement)).one_or_none()
        if row is None:
            return {}
        sealed = Sealed(row.sealed, row.key_id)
        plain = self._box.open(sealed, table=VALUES_TABLE, column=VALUES_COLUMN, row_id=row.id)
        values = msgspec.json.decode(plain, type=dict[str, str])
        slots = {slot.header for slot in server.settings.user_values}
        return {header: value for header, value in values.items() if header in slots}


def _row_id(server: Server, user_id: str) -> str:
    """Return the id to which the ciphertext is bound: it opens for this server and user only."""
    return str(uuid5(UUID(server.id), user_id))


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
