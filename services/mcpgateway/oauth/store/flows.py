"""Flows in PostgreSQL: bound to a user and a browser, used once, gone after minutes."""

from datetime import datetime
from typing import Final

import msgspec

from mcpgateway.oauth.domain.flows import Flow
from mcpgateway.oauth.domain.grants import Terms
from mcpgateway.oauth.errors import FlowConsumed, FlowExpired, IssuerFailed
from parley.postgres import Database
from parley.secrets import Sealed, SecretBox, SecretsError

TABLE: Final = "mcp.oauth_flows"
COLUMN: Final = "sealed"
#: A user has at most so many open flows for one server.
OPEN_MAX: Final = 5

# May run: user.
_TIDY = """
    DELETE FROM mcp.oauth_flows WHERE expires_at < $3::timestamptz - interval '1 hour'
        OR (user_id = $1 AND server_id = $2 AND request_id = $4)
        OR id IN (
            SELECT id FROM mcp.oauth_flows
            WHERE user_id = $1 AND server_id = $2 AND consumed_at IS NULL
            ORDER BY created_at DESC OFFSET $5
        )
"""
# May run: user.
_INSERT = """
    INSERT INTO mcp.oauth_flows (id, state_sha256, server_id, user_id, request_id, browser_sha256,
        fingerprint, sealed, key_id, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
"""
# May run: user.
_CONSUME = """
    UPDATE mcp.oauth_flows SET consumed_at = now(), consumed_by = $3
    WHERE state_sha256 = $1 AND consumed_at IS NULL AND expires_at > $2
    RETURNING id::text, server_id::text, user_id, browser_sha256, fingerprint, sealed, key_id
"""
# May run: user.
_CONSUMED = """
    SELECT server_id::text, user_id, consumed_by, completed_at FROM mcp.oauth_flows
    WHERE state_sha256 = $1 AND consumed_at IS NOT NULL
"""
# May run: user.
_COMPLETE = "UPDATE mcp.oauth_flows SET completed_at = now() WHERE id = $1"


class _Content(msgspec.Struct):
    terms: Terms
    sends_issuer: bool
    scopes: tuple[str, ...]
    verifier: str


class Flows:
    """The stored flows."""

    def __init__(self, database: Database, box: SecretBox) -> None:
        self._database = database
        self._box = box

    async def begin(
        self,
        flow: Flow,
        state_sha256: bytes,
        request_id: str,
        *,
        now: datetime,
        expires_at: datetime,
    ) -> None:
        """Store a flow; the one of the same request ends, and so do old and surplus ones."""
        content = _Content(flow.terms, flow.sends_issuer, flow.scopes, flow.verifier)
        plain = msgspec.json.encode(content)
        sealed = self._box.seal(plain, table=TABLE, column=COLUMN, row_id=flow.id)
        pool = self._database.pool
        await pool.execute(_TIDY, flow.user_id, flow.server_id, now, request_id, OPEN_MAX - 1)
        await pool.execute(
            _INSERT,
            flow.id,
            state_sha256,
            flow.server_id,
            flow.user_id,
            request_id,
            flow.browser_sha256,
            flow.fingerprint,
            sealed.ciphertext,
            sealed.key_id,
            expires_at,
        )

    async def consume(self, state_sha256: bytes, request_id: str, now: datetime) -> Flow:
        """Take a flow, so that nobody can take it again.

        Raises:
            FlowExpired: There is none, or it is too old.
            FlowConsumed: It was taken before.
        """
        row = await self._database.pool.fetchrow(_CONSUME, state_sha256, now, request_id)
        if row is None:
            taken = await self._database.pool.fetchrow(_CONSUMED, state_sha256)
            raise FlowExpired if taken is None else FlowConsumed
        try:
            sealed = Sealed(row["sealed"], row["key_id"])
            plain = self._box.open(sealed, table=TABLE, column=COLUMN, row_id=row["id"])
        except SecretsError as error:
            raise FlowExpired from error
        content = msgspec.json.decode(plain, type=_Content)
        return Flow(
            id=row["id"],
            server_id=row["server_id"],
            user_id=row["user_id"],
            browser_sha256=row["browser_sha256"],
            fingerprint=row["fingerprint"],
            terms=content.terms,
            sends_issuer=content.sends_issuer,
            scopes=content.scopes,
            verifier=content.verifier,
        )

    async def complete(self, flow: Flow) -> None:
        """Store that the grant of a flow is stored."""
        await self._database.pool.execute(_COMPLETE, flow.id)

    async def completed_server(self, state_sha256: bytes, request_id: str, user_id: str) -> str:
        """Return the server of the flow that the same request of this user completed.

        Raises:
            FlowConsumed: Another request took it.
            IssuerFailed: The same request took it, and did not complete it.
        """
        row = await self._database.pool.fetchrow(_CONSUMED, state_sha256)
        if row is None or (row["user_id"], row["consumed_by"]) != (user_id, request_id):
            raise FlowConsumed
        if row["completed_at"] is None:
            raise IssuerFailed("", "it gave no usable token; begin again")
        return str(row["server_id"])
