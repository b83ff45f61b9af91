"""The health of servers as stored: written when it changes, and now and then while it stays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from mcpgateway.servers.domain import Reason, ServerState
from mcpgateway.servers.errors import UpstreamFailed
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.postgres import Database

#: An unchanged state is written again after this long.
WRITE_S: Final = 30.0
SERVERS_MAX: Final = 2000
#: Failures that concern the credentials or the settings, not the server.
OF_SETTINGS: Final = frozenset({Reason.MISCONFIGURED, Reason.ADDRESS_BLOCKED})
#: Failures that concern the login of one user.
OF_LOGIN: Final = frozenset(
    {Reason.NEEDS_CONNECT, Reason.NEEDS_RECONNECT, Reason.INSUFFICIENT_SCOPE}
)

# May run: service.
_WRITE = """
    INSERT INTO mcp.server_health (server_id, state, reason, detail, last_ok_at, last_error_at,
        tool_count)
    SELECT id, $2, $3, $4, CASE WHEN $3 = '' THEN now() END, CASE WHEN $3 <> '' THEN now() END, $5
    FROM mcp.servers WHERE id = $1
    ON CONFLICT (server_id) DO UPDATE SET state = excluded.state, reason = excluded.reason,
        detail = excluded.detail,
        last_ok_at = coalesce(excluded.last_ok_at, server_health.last_ok_at),
        last_error_at = coalesce(excluded.last_error_at, server_health.last_error_at),
        tool_count = CASE WHEN $3 = '' THEN $5 ELSE server_health.tool_count END
"""
# May run: administrator.
_READ = "SELECT *, server_id::text AS id FROM mcp.server_health WHERE server_id = ANY($1::uuid[])"


@dataclass(frozen=True, slots=True)
class Health:
    """How a server did lately."""

    state: ServerState
    reason: Reason | None
    detail: str
    last_ok_at: datetime | None
    last_error_at: datetime | None
    tool_count: int


class ServerHealth:
    """Stores how servers do."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._written: BoundedCache[tuple[str, str, int], bool] = BoundedCache(
            SERVERS_MAX, clock=clock, ttl_of=lambda _: WRITE_S
        )

    async def is_well(self, server_id: str, tool_count: int) -> None:
        """Store that a server listed its tools."""
        await self._write(server_id, ServerState.READY, "", "", tool_count)

    async def failed(self, server_id: str, failure: UpstreamFailed) -> None:
        """Store that a server failed; the login of one user says nothing about others."""
        if failure.reason in OF_LOGIN:
            return
        await self._write(server_id, state_of(failure), failure.reason, str(failure)[:1024], 0)

    async def read(self, server_ids: Sequence[str]) -> Mapping[str, Health]:
        """Return the health of servers, by id; those that were never contacted have none."""
        rows = await self._database.pool.fetch(_READ, list(server_ids))
        return {
            row["id"]: Health(
                ServerState(row["state"]),
                Reason(row["reason"]) if row["reason"] else None,
                row["detail"],
                row["last_ok_at"],
                row["last_error_at"],
                row["tool_count"],
            )
            for row in rows
        }

    async def _write(
        self, server_id: str, state: ServerState, reason: str, detail: str, tool_count: int
    ) -> None:
        entry = (server_id, reason, tool_count)
        if self._written.get(entry):
            return
        # Of one server only the last state counts as written.
        for other in [each for each, _ in self._written.items() if each[0] == server_id]:
            self._written.pop(other)
        self._written.put(entry, True)
        await self._database.pool.execute(
            _WRITE, server_id, state, reason, detail.replace("\0", ""), tool_count
        )


def state_of(failure: UpstreamFailed) -> ServerState:
    """Return the state of a server that failed so."""
    if failure.reason in OF_LOGIN:
        return ServerState.NEEDS_AUTHORIZATION
    return ServerState.MISCONFIGURED if failure.reason in OF_SETTINGS else ServerState.UNAVAILABLE
