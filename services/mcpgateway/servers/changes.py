"""What admins changed: stored without secrets, and longer than the servers themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from mcpgateway.servers.domain import Server, ServerSettings
from parley.postgres import Database
from parley.telemetry import audit

# May run: administrator.
_ADD = """
    INSERT INTO mcp.server_changes (id, server_id, user_id, kind, version, fields)
    VALUES ($1, $2, $3, $4, $5, $6::text::jsonb)
"""
# May run: administrator.
_PAGE = """
    SELECT id::text AS id, user_id, kind, version, fields::text AS fields, changed_at
    FROM mcp.server_changes
    WHERE server_id = $1 AND ($2::uuid IS NULL OR id < $2::uuid) ORDER BY id DESC LIMIT $3
"""


class ChangeKind(StrEnum):
    """What was done to a server."""

    CREATED = "created"
    UPDATED = "updated"
    DELETED = "deleted"
    TOOLS_APPROVED = "tools_approved"


@dataclass(frozen=True, slots=True)
class ServerChange:
    """A stored change; its id is time-ordered."""

    id: str
    user_id: str
    kind: ChangeKind
    version: int
    fields_json: str
    changed_at: datetime


class ServerChanges:
    """Stores changes, and logs each for auditors."""

    def __init__(self, database: Database, new_id: Callable[[], str]) -> None:
        self._database = database
        self._new_id = new_id

    async def add(
        self, server: Server, user_id: str, kind: ChangeKind, fields: Mapping[str, Any]
    ) -> None:
        """Store a change of a server by a user."""
        text = msgspec.json.encode(fields).decode()
        await self._database.pool.execute(
            _ADD, self._new_id(), server.id, user_id, kind, server.version, text
        )
        audit(
            f"mcp_server.{kind}",
            user_id=user_id,
            server_id=server.id,
            slug=server.settings.slug,
            fields=", ".join(fields),
        )

    async def page(
        self, server_id: str, before_id: str | None, limit: int
    ) -> Sequence[ServerChange]:
        """Return changes of a server, the newest first."""
        rows = await self._database.pool.fetch(_PAGE, server_id, before_id, limit)
        return [
            ServerChange(
                row["id"],
                row["user_id"],
                ChangeKind(row["kind"]),
                row["version"],
                row["fields"],
                row["changed_at"],
            )
            for row in rows
        ]


def changed_fields(
    before: ServerSettings | None, after: ServerSettings, *, has_new_credentials: bool
) -> dict[str, Any]:
    """Return the settings that differ, each with its values before and after; no secret."""
    old = {} if before is None else msgspec.to_builtins(before)
    new = msgspec.to_builtins(after)
    fields: dict[str, Any] = {
        name: {"before": old.get(name), "after": value}
        for name, value in new.items()
        if before is None or old[name] != value
    }
    if has_new_credentials:
        fields["credentials"] = {"before": None, "after": None}
    return fields
