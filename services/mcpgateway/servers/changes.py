"""What admins changed: stored without secrets, and longer than the servers themselves.

A change is inserted in the transaction that makes it, so that neither exists without the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from mcpgateway.servers.domain import Server, ServerSettings
from parley.postgres import Database
from parley.rpc import current_origin
from parley.telemetry import audit

# May run: administrator.
ADD_CHANGE = """
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


@dataclass(frozen=True, slots=True)
class NewChange:
    """A change of a server by the user whose call is served.

    Attributes:
        id: Its id, time-ordered.
        server: The server after the change.
        kind: What was done.
        fields: What is different, without secrets.
    """

    id: str
    server: Server
    kind: ChangeKind
    fields: Mapping[str, Any]

    @property
    def arguments(self) -> tuple[object, ...]:
        """Return the arguments of `ADD_CHANGE`."""
        text = msgspec.json.encode(self.fields).decode()
        server = self.server
        return (self.id, server.id, _user_id(), self.kind, server.version, text)

    def log(self) -> None:
        """Log the change for auditors, after it was stored."""
        audit(
            f"mcp_server.{self.kind}",
            user_id=_user_id(),
            server_id=self.server.id,
            slug=self.server.settings.slug,
            fields=", ".join(self.fields),
        )


class ServerChanges:
    """Reads stored changes."""

    def __init__(self, database: Database) -> None:
        self._database = database

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


def _user_id() -> str:
    return current_origin().user_id or ""
