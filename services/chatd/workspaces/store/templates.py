"""Templates in PostgreSQL, and their use by users."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

import asyncpg

from chatd.primitives.domain.errors import NameTaken, RequestIdReused, VersionConflict
from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.store.audit_outbox import record_event
from chatd.primitives.store.constraints import Constraint
from chatd.workspaces.domain.errors import TemplateNotFound
from chatd.workspaces.domain.ranking import LOOK_BACK, TemplateUsage
from chatd.workspaces.domain.templates import Template
from chatd.workspaces.store.rows import definition_of, template_of
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Connection, Pool

_TEMPLATE = (
    "t.id, t.name, t.kind, t.is_for_agents, t.group_ids, t.definition, t.version, t.created_at"
)

# Insert a template, for administrators; an existing id is a repeated request.
# May run: administrator.
INSERT = f"""
    INSERT INTO chat.templates AS t (id, name, kind, is_for_agents, group_ids, definition, version,
        request_hash, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, 1, $7, clock_timestamp())
    ON CONFLICT (id) DO NOTHING RETURNING {_TEMPLATE}
"""
# May run: administrator.
LOCK = f"""
    SELECT {_TEMPLATE}, t.request_hash FROM chat.templates t
    WHERE t.id = $1 AND t.deleted_at IS NULL FOR UPDATE
"""
# May run: administrator.
UPDATE = f"""
    UPDATE chat.templates t SET name = $2, kind = $3, is_for_agents = $4, group_ids = $5,
        definition = $6, version = t.version + 1
    WHERE t.id = $1 AND t.deleted_at IS NULL RETURNING {_TEMPLATE}
"""
# May run: administrator.
DELETE = """
    UPDATE chat.templates SET deleted_at = clock_timestamp()
    WHERE id = $1 AND deleted_at IS NULL RETURNING id
"""

# A template that a user may use: available to everyone, or to one of their groups.
# May run: user.
SELECT = f"""
    SELECT {_TEMPLATE} FROM chat.templates t WHERE t.id = $1 AND t.deleted_at IS NULL
        AND ($3 OR t.group_ids = '{{}}' OR t.group_ids && $2::uuid[])
"""

# All templates that a user may use, with their use by this user and others.
# May run: user.
SELECT_ALL = f"""
    SELECT {_TEMPLATE}, clock_timestamp() AS now,
        count(w.id) FILTER (WHERE w.owner_id = $1 AND w.state <> 'deleted') AS live,
        count(w.id) FILTER (WHERE w.owner_id = $1 AND w.state = 'deleted') AS deleted,
        max(w.last_used_at) FILTER (WHERE w.owner_id = $1) AS used_at,
        count(DISTINCT w.owner_id) FILTER (WHERE w.state <> 'deleted') AS active_users
    FROM chat.templates t LEFT JOIN chat.workspaces w ON w.template_id = t.id
        AND NOT w.is_scratch_of_chat AND w.last_used_at > clock_timestamp() - $4::interval
    WHERE t.deleted_at IS NULL AND ($3 OR t.group_ids = '{{}}' OR t.group_ids && $2::uuid[])
        AND (t.is_for_agents OR NOT $5)
    GROUP BY t.id ORDER BY t.name LIMIT 1000
"""


class PostgresTemplates:
    """Stores templates."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def create(self, template: Template, request_hash: bytes) -> Template:
        """Store a template, or return the one that the same request stored.

        Raises:
            NameTaken: another one has the name.
            RequestIdReused: the request came with another body before.
            TemplateNotFound: it was created by this request and deleted since.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            with _names_taken(template):
                row = await connection.fetchrow(INSERT, *_arguments(template), request_hash)
            if row is None:
                row = await connection.fetchrow(LOCK, template.id)
                if row is None:
                    raise TemplateNotFound(template.id)
                if row["request_hash"] != request_hash:
                    raise RequestIdReused(template.id)
            else:
                await _record(connection, AuditAction.TEMPLATE_CREATED, template.id)
        return template_of(row)

    async def update(
        self,
        template_id: str,
        edit: Callable[[Template], Template],
        expected_version: int | None = None,
    ) -> Template:
        """Change a template with `edit`.

        Raises:
            TemplateNotFound: there is none.
            VersionConflict: it changed since that version.
            NameTaken: another one has the name.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            stored = await connection.fetchrow(LOCK, template_id)
            if stored is None:
                raise TemplateNotFound(template_id)
            if expected_version not in (None, stored["version"]):
                raise VersionConflict(str(stored["version"]))
            template = edit(template_of(stored))
            with _names_taken(template):
                row = await connection.fetchrow(UPDATE, *_arguments(template))
            await _record(connection, AuditAction.TEMPLATE_UPDATED, template_id)
        assert row is not None  # The row was locked.
        return template_of(row)

    async def delete(self, template_id: str) -> None:
        """Delete a template, if it exists."""
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(DELETE, template_id) is not None:
                await _record(connection, AuditAction.TEMPLATE_DELETED, template_id)

    async def get(
        self, template_id: str, group_ids: frozenset[str], *, is_all_seen: bool = False
    ) -> Template:
        """Return a template that a user in these groups may use.

        Raises:
            TemplateNotFound: there is none.
        """
        row = await self._pool.fetchrow(SELECT, template_id, list(group_ids), is_all_seen)
        if row is None:
            raise TemplateNotFound(template_id)
        return template_of(row)

    async def list(
        self,
        owner_id: OwnerId,
        group_ids: frozenset[str],
        *,
        is_all_seen: bool = False,
        for_agents: bool = False,
    ) -> tuple[tuple[tuple[Template, TemplateUsage], ...], datetime | None]:
        """Return the templates that a user may use, with their use, and the database time."""
        rows = await self._pool.fetch(
            SELECT_ALL, owner_id, list(group_ids), is_all_seen, LOOK_BACK, for_agents
        )
        entries = tuple(
            (
                template_of(row),
                TemplateUsage(row["live"], row["deleted"], row["used_at"], row["active_users"]),
            )
            for row in rows
        )
        return entries, rows[0]["now"] if rows else None


async def _record(connection: Connection, action: AuditAction, template_id: str) -> None:
    await record_event(connection, AuditEvent(action, template_id))


def _arguments(template: Template) -> tuple[object, ...]:
    return (
        template.id,
        template.name,
        template.kind,
        template.is_for_agents,
        list(template.group_ids),
        definition_of(template),
    )


@contextmanager
def _names_taken(template: Template) -> Iterator[None]:
    """Convert a violation of the unique name to NameTaken."""
    try:
        yield
    except asyncpg.UniqueViolationError as violation:
        if violation.constraint_name != Constraint.TEMPLATES_BY_NAME:
            raise
        raise NameTaken("template", template.name) from violation
