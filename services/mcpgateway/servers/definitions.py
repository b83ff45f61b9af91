"""Definitions of tools that were seen: the first of each tool is approved, changed ones wait."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mcpgateway.servers.changes import ADD_CHANGE, ChangeKind, NewChange
from mcpgateway.servers.domain import PinPolicy, Server, Tool
from mcpgateway.servers.schema import SCHEMA
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.outbox import record
from parley.cache import BoundedCache
from parley.postgres import Database

SERVERS_MAX: Final = 2000
DEFINITIONS_MAX: Final = 20_000

# May run: user, service.
_READ = "SELECT tool, digest, is_approved FROM mcp.tool_definitions WHERE server_id = $1"
# A tool that was never seen is approved; of several pending definitions the newest is kept.
# May run: user, service.
_ADD = """
    WITH seen AS (
        SELECT * FROM unnest($2::text[], $3::text[], $4::text[], $5::text[])
            AS seen (tool, digest, description, input_schema)),
    replaced AS (
        DELETE FROM mcp.tool_definitions d USING seen
        WHERE d.server_id = $1 AND d.tool = seen.tool AND d.digest <> seen.digest
            AND NOT d.is_approved)
    INSERT INTO mcp.tool_definitions (server_id, tool, digest, description, input_schema,
        is_approved)
    SELECT s.id, seen.tool, seen.digest, seen.description, seen.input_schema, NOT EXISTS (
        SELECT FROM mcp.tool_definitions d WHERE d.server_id = $1 AND d.tool = seen.tool)
    FROM seen JOIN mcp.servers s ON s.id = $1
    ON CONFLICT DO NOTHING
"""
# May run: administrator.
_APPROVE = """
    UPDATE mcp.tool_definitions d SET is_approved = true, approved_by = $4
    FROM unnest($2::text[], $3::text[]) AS seen (tool, digest)
    WHERE d.server_id = $1 AND d.tool = seen.tool AND d.digest = seen.digest AND NOT d.is_approved
"""
# May run: administrator.
_COUNT = """
    SELECT server_id::text, count(*) AS pending FROM mcp.tool_definitions
    WHERE server_id = ANY($1::uuid[]) AND NOT is_approved GROUP BY server_id
"""
# May run: administrator.
_PENDING = """
    SELECT DISTINCT tool FROM mcp.tool_definitions
    WHERE server_id = $1 AND NOT is_approved ORDER BY tool
"""
# May run: user, service.
_APPROVED = """
    SELECT DISTINCT ON (tool) tool, description, input_schema FROM mcp.tool_definitions
    WHERE server_id = $1 AND is_approved AND tool = ANY($2)
    ORDER BY tool, first_seen_at DESC
"""


@dataclass(frozen=True, slots=True)
class ApprovedDefinition:
    """The definition of a tool that was approved last."""

    description: str
    input_schema_json: str


class Definitions:
    """Decides which tools of a server are quarantined.

    Args:
        database: Where definitions are stored.
        new_id: Returns ids of changes, time-ordered.
        definitions_max: How many are stored of one server.
    """

    def __init__(
        self,
        database: Database,
        new_id: Callable[[], str],
        definitions_max: int = DEFINITIONS_MAX,
    ) -> None:
        self._database = database
        self._new_id = new_id
        self._definitions_max = definitions_max
        self._known: BoundedCache[str, dict[tuple[str, str], bool]] = BoundedCache(SERVERS_MAX)

    async def quarantined(self, server: Server, tools: Mapping[str, Tool]) -> frozenset[str]:
        """Return the tools that must not be offered, and remember definitions that are new."""
        if server.settings.pin_policy is PinPolicy.OFF:
            return frozenset()
        known = await self._known.get_or_read(server.id, lambda: self._read(server.id))
        new = [tool for tool in tools.values() if (tool.name, tool.digest) not in known]
        # A server that invents tools for ever is not stored for ever: the rest stays quarantined.
        new = new[: max(0, self._definitions_max - len(known))]
        if new:
            await self._database.pool.execute(
                _ADD,
                server.id,
                [tool.name for tool in new],
                [tool.digest for tool in new],
                [tool.description for tool in new],
                [tool.input_schema_json.decode() for tool in new],
            )
            known = await self._read(server.id)
            self._known.put(server.id, known)
        return frozenset(
            tool.name for tool in tools.values() if not known.get((tool.name, tool.digest), False)
        )

    async def approve(
        self, server: Server, seen: Sequence[tuple[str, str]], approved_by: str
    ) -> None:
        """Approve definitions by tool and digest."""
        names, digests = [name for name, _ in seen], [digest for _, digest in seen]
        details = {"tools": str(len(names))}
        event = AuditEvent(AuditAction.MCP_SERVER_TOOLS_APPROVED, server.id, details=details)
        change = NewChange(self._new_id(), server, ChangeKind.TOOLS_APPROVED, dict(seen))
        async with self._database.pool.acquire() as connection, connection.transaction():
            await connection.execute(_APPROVE, server.id, names, digests, approved_by)
            await record(connection, SCHEMA, event)
            await connection.execute(ADD_CHANGE, *change.arguments)
        self.forget(server.id)
        change.log()

    async def pending_counts(self, server_ids: Sequence[str]) -> Mapping[str, int]:
        """Return how many definitions wait for approval, by server."""
        rows = await self._database.pool.fetch(_COUNT, list(server_ids))
        return {row["server_id"]: row["pending"] for row in rows}

    async def pending(self, server_id: str) -> Sequence[str]:
        """Return the tools with definitions that wait for approval, ordered."""
        rows = await self._database.pool.fetch(_PENDING, server_id)
        return [row["tool"] for row in rows]

    async def approved(
        self, server_id: str, tools: Sequence[str]
    ) -> Mapping[str, ApprovedDefinition]:
        """Return the definitions of tools that were approved last."""
        rows = await self._database.pool.fetch(_APPROVED, server_id, list(tools))
        return {
            row["tool"]: ApprovedDefinition(row["description"], row["input_schema"]) for row in rows
        }

    def forget(self, server_id: str | None = None) -> None:
        """Drop what is cached of a server, or of all."""
        if server_id is None:
            self._known.clear()
        else:
            self._known.pop(server_id)

    async def _read(self, server_id: str) -> dict[tuple[str, str], bool]:
        rows = await self._database.pool.fetch(_READ, server_id)
        return {(row["tool"], row["digest"]): row["is_approved"] for row in rows}
