"""Clients that authorization servers registered for us (RFC 7591), kept per issuer."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID, uuid5

from mcpgateway.oauth.domain.grants import AuthMethod
from parley.postgres import Database
from parley.secrets import Sealed, SecretBox, SecretsError

TABLE: Final = "mcp.oauth_clients"
COLUMN: Final = "sealed"

# May run: user.
_FIND = """
    SELECT id::text, client_id, auth_method, sealed, key_id, expires_at FROM mcp.oauth_clients
    WHERE server_id = $1 AND issuer = $2 AND redirect_uri = $3
"""
# May run: user.
_PUT = """
    INSERT INTO mcp.oauth_clients (id, server_id, issuer, redirect_uri, client_id, auth_method,
        sealed, key_id, expires_at)
    SELECT $1, id, $3, $4, $5, $6, $7, $8, $9 FROM mcp.servers WHERE id = $2
    ON CONFLICT (id) DO UPDATE SET client_id = excluded.client_id,
        auth_method = excluded.auth_method, sealed = excluded.sealed, key_id = excluded.key_id,
        expires_at = excluded.expires_at, registered_at = now()
"""
# May run: user.
_DELETE = "DELETE FROM mcp.oauth_clients WHERE server_id = $1 AND issuer = $2 AND client_id = $3"


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A registered client."""

    client_id: str
    auth_method: AuthMethod
    secret: str = field(default="", repr=False)
    expires_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Return whether its secret can still be used."""
        return self.expires_at is None or self.expires_at > now


class Clients:
    """The registered clients."""

    def __init__(self, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def find(self, server_id: str, issuer: str, redirect_uri: str) -> RegisteredClient | None:
        """Return the client of a server at an issuer; one that cannot be decrypted is none."""
        row = await self._database.pool.fetchrow(_FIND, server_id, issuer, redirect_uri)
        if row is None:
            return None
        sealed = Sealed(row["sealed"], row["key_id"])
        try:
            secret = self._box.open(sealed, table=TABLE, column=COLUMN, row_id=row["id"])
        except SecretsError:
            return None
        method = AuthMethod(row["auth_method"])
        return RegisteredClient(row["client_id"], method, secret.decode(), row["expires_at"])

    async def put(
        self, server_id: str, issuer: str, redirect_uri: str, client: RegisteredClient
    ) -> None:
        """Store a client, in place of an earlier one."""
        row_id = str(uuid5(UUID(server_id), f"client:{issuer}\n{redirect_uri}"))
        plain = client.secret.encode()
        sealed = self._box.seal(plain, table=TABLE, column=COLUMN, row_id=row_id)
        await self._database.pool.execute(
            _PUT,
            row_id,
            server_id,
            issuer,
            redirect_uri,
            client.client_id,
            client.auth_method,
            sealed.ciphertext,
            sealed.key_id,
            client.expires_at,
        )

    async def delete(self, server_id: str, issuer: str, client_id: str) -> None:
        """Forget a client that its issuer no longer knows."""
        await self._database.pool.execute(_DELETE, server_id, issuer, client_id)
