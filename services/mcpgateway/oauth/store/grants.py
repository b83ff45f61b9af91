"""Grants in PostgreSQL; every statement names the user whose grant it is, or the row itself."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from mcpgateway.oauth.domain.flows import Flow
from mcpgateway.oauth.domain.grants import (
    Grant,
    GrantFailure,
    Terms,
    TokenAnswer,
    Tokens,
    fingerprint_of,
    grant_id,
    refresh_time,
)
from mcpgateway.servers.domain import Server
from parley.postgres import Database
from parley.secrets import Sealed, SecretBox, SecretsError

TABLE: Final = "mcp.grants"
COLUMN: Final = "sealed"
_COLUMNS: Final = """
    id::text, server_id::text, user_id, version, fingerprint, terms::text, sealed, key_id,
    expires_at, refresh_at, granted_scopes, missing_scopes, failure
"""

# May run: user.
_FIND = f"SELECT {_COLUMNS} FROM mcp.grants WHERE user_id = $1 AND server_id = $2"
# May run: user.
_FIND_ALL = f"SELECT {_COLUMNS} FROM mcp.grants WHERE user_id = $1 AND server_id = ANY($2::uuid[])"
# May run: user.
_OF_USER = f"SELECT {_COLUMNS} FROM mcp.grants WHERE user_id = $1 ORDER BY server_id LIMIT $2"
# The version of the server is locked, so that an admin cannot change it in between.
# May run: user.
_PUT = f"""
    INSERT INTO mcp.grants (id, server_id, user_id, version, fingerprint, terms, sealed, key_id,
        expires_at, refresh_at, granted_scopes)
    SELECT $1, id, $4, 1, $5, $6::jsonb, $7, $8, $9, $10, $11
    FROM mcp.servers WHERE id = $2 AND version = $3 FOR SHARE
    ON CONFLICT (id) DO UPDATE SET version = grants.version + 1,
        fingerprint = excluded.fingerprint, terms = excluded.terms, sealed = excluded.sealed,
        key_id = excluded.key_id, expires_at = excluded.expires_at,
        refresh_at = excluded.refresh_at,
        refreshing_until = NULL, granted_scopes = excluded.granted_scopes, missing_scopes = '{{}}',
        failure = '', updated_at = now()
    RETURNING {_COLUMNS}
"""
# The lease is judged by the clock of the database. That the row of a process expired is no proof
# that it ended: it may renew still, and a second use of its token would revoke the login.
# May run: user.
_LEASE = """
    UPDATE mcp.grants SET refreshing_until = now() + $3::interval, refreshing_by = $4
    WHERE id = $1 AND version = $2 AND failure = ''
        AND (refreshing_until IS NULL OR refreshing_until < now())
    RETURNING 1
"""
# May run: user.
_RELEASE = "UPDATE mcp.grants SET refreshing_until = NULL WHERE id = $1 AND version = $2"
# Only an update: a login that was given up meanwhile stays so.
# May run: user.
_RENEW = f"""
    UPDATE mcp.grants SET version = version + 1, sealed = $3, key_id = $4,
        expires_at = $5, refresh_at = $6, refreshing_until = NULL,
        granted_scopes = coalesce($7, granted_scopes), updated_at = now()
    WHERE id = $1 AND version = $2
    RETURNING {_COLUMNS}
"""
# May run: user.
_FAIL = """
    UPDATE mcp.grants SET failure = $3, refreshing_until = NULL, updated_at = now()
    WHERE id = $1 AND version = $2
"""
# May run: user.
_MISS = "UPDATE mcp.grants SET missing_scopes = $3 WHERE id = $1 AND version = $2"
# May run: user.
_DELETE = f"DELETE FROM mcp.grants WHERE user_id = $1 AND server_id = $2 RETURNING {_COLUMNS}"
# May run: process.
_DELETE_OF_USER = """
    WITH begun AS (DELETE FROM mcp.oauth_flows WHERE user_id = $1)
    DELETE FROM mcp.grants WHERE user_id = $1
"""


class GrantStore:
    """The stored grants, as one process of the table `mcp.gateways` renews them."""

    def __init__(self, database: Database, box: SecretBox, process_id: str) -> None:
        self._database = database
        self._box = box
        self._process_id = process_id

    async def find(self, server: Server, user_id: str) -> Grant | None:
        """Return the grant of a user; one made under other settings of the server is none."""
        if not user_id:
            return None
        row = await self._database.pool.fetchrow(_FIND, user_id, server.id)
        if row is None or row["fingerprint"] != fingerprint_of(server.settings):
            return None
        return self._grant(row)

    async def find_all(self, user_id: str, found: Sequence[Server]) -> Mapping[str, Grant]:
        """Return the grants of a user at servers, by server."""
        if not user_id or not found:
            return {}
        rows = await self._database.pool.fetch(_FIND_ALL, user_id, [each.id for each in found])
        fingerprints = {each.id: fingerprint_of(each.settings) for each in found}
        return {
            row["server_id"]: self._grant(row)
            for row in rows
            if row["fingerprint"] == fingerprints[row["server_id"]]
        }

    async def of_user(self, user_id: str, limit: int) -> tuple[Grant, ...]:
        """Return the grants of a user, whatever their servers are now."""
        rows = await self._database.pool.fetch(_OF_USER, user_id, limit)
        return tuple(self._grant(row) for row in rows)

    async def put(
        self, server: Server, flow: Flow, answer: TokenAnswer, now: datetime
    ) -> Grant | None:
        """Store the grant of a flow; None if the server was changed since it was read."""
        row_id = grant_id(flow.server_id, flow.user_id)
        sealed = self._sealed(row_id, answer.tokens)
        expires_at, refresh_at = refresh_time(row_id, now, answer.lifetime)
        row = await self._database.pool.fetchrow(
            _PUT,
            row_id,
            server.id,
            server.version,
            flow.user_id,
            flow.fingerprint,
            msgspec.json.encode(flow.terms).decode(),
            sealed.ciphertext,
            sealed.key_id,
            expires_at,
            refresh_at,
            list(flow.scopes if answer.scopes is None else answer.scopes),
        )
        return None if row is None else self._grant(row)

    async def lease(self, grant: Grant, duration: timedelta) -> bool:
        """Return whether the caller, and nobody else, may renew this version for a while."""
        row = await self._database.pool.fetchrow(
            _LEASE, grant.id, grant.version, duration, self._process_id
        )
        return row is not None

    async def release(self, grant: Grant) -> None:
        """Let others renew it."""
        await self._database.pool.execute(_RELEASE, grant.id, grant.version)

    async def renew(self, grant: Grant, answer: TokenAnswer, now: datetime) -> Grant | None:
        """Store new tokens; None if the grant was changed or given up meanwhile."""
        tokens = Tokens(
            answer.tokens.access_token, answer.tokens.refresh_token or grant.tokens.refresh_token
        )
        sealed = self._sealed(grant.id, tokens)
        expires_at, refresh_at = refresh_time(grant.id, now, answer.lifetime)
        row = await self._database.pool.fetchrow(
            _RENEW,
            grant.id,
            grant.version,
            sealed.ciphertext,
            sealed.key_id,
            expires_at,
            refresh_at,
            None if answer.scopes is None else list(answer.scopes),
        )
        return None if row is None else self._grant(row)

    async def fail(self, grant: Grant, failure: GrantFailure) -> None:
        """Mark this version as unusable; a newer one stays as it is."""
        await self._database.pool.execute(_FAIL, grant.id, grant.version, failure)

    async def miss(self, grant: Grant, scopes: Sequence[str]) -> None:
        """Store which scopes the server asked for beyond the granted ones."""
        await self._database.pool.execute(_MISS, grant.id, grant.version, list(scopes))

    async def delete(self, server_id: str, user_id: str) -> Grant | None:
        """Delete the grant of a user, whatever the server is now; return it if it existed."""
        row = await self._database.pool.fetchrow(_DELETE, user_id, server_id)
        return None if row is None else self._grant(row)

    async def delete_of_user(self, user_id: str) -> None:
        """Delete all grants of a user who is gone, and the logins that they began."""
        await self._database.pool.execute(_DELETE_OF_USER, user_id)

    def _sealed(self, row_id: str, tokens: Tokens) -> Sealed:
        plain = msgspec.json.encode(tokens)
        return self._box.seal(plain, table=TABLE, column=COLUMN, row_id=row_id)

    def _grant(self, row: Any) -> Grant:
        failure = GrantFailure(row["failure"])
        try:
            sealed = Sealed(row["sealed"], row["key_id"])
            plain = self._box.open(sealed, table=TABLE, column=COLUMN, row_id=row["id"])
            tokens = msgspec.json.decode(plain, type=Tokens)
        except SecretsError:
            tokens, failure = Tokens(""), GrantFailure.UNREADABLE
        return Grant(
            id=row["id"],
            server_id=row["server_id"],
            user_id=row["user_id"],
            version=row["version"],
            fingerprint=row["fingerprint"],
            terms=msgspec.json.decode(row["terms"], type=Terms),
            tokens=tokens,
            expires_at=row["expires_at"],
            refresh_at=row["refresh_at"],
            granted_scopes=tuple(row["granted_scopes"]),
            missing_scopes=tuple(row["missing_scopes"]),
            failure=failure,
        )
