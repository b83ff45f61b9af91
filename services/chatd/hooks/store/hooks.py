"""Hooks in PostgreSQL; the secret of one is sealed here and opened only for a delivery.

Only administrators change hooks, which is checked before.
"""

import logging
import uuid
from collections.abc import Callable
from datetime import timedelta

import asyncpg

from chatd.hooks.domain.errors import TooManyHooks
from chatd.hooks.domain.hooks import HOOKS_MAX, FailPolicy, Hook, HookEvent
from chatd.primitives.domain.errors import (
    NameTaken,
    RequestIdReused,
    ResourceNotFound,
    VersionConflict,
)
from chatd.primitives.store.audit_outbox import record_event
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Pool
from parley.secrets import Sealed, SecretBox, SecretsError
from parley.settings import Secret

logger = logging.getLogger(__name__)

RESOURCE = "hook"
TABLE = "chat.hooks"
COLUMN = "sealed"

PREVIOUS_COLUMN = "previous_sealed"

# The end of an overlap is not read after it.
_COLUMNS = """id, name, url, events, tools, timeout_ms, fail_policy, is_disabled, version,
        created_at,
        CASE WHEN previous_until > clock_timestamp() THEN previous_until END AS previous_until"""

# The oldest first.
# May run: administrator, process.
SELECT_HOOKS = f"SELECT {_COLUMNS} FROM chat.hooks ORDER BY created_at, id"

# May run: administrator.
SELECT_HOOK = f"SELECT {_COLUMNS} FROM chat.hooks WHERE id = $1"

# May run: administrator.
LOCK_HOOK = f"SELECT {_COLUMNS} FROM chat.hooks WHERE id = $1 FOR UPDATE"

# The hooks, locked, so that they are counted and their names compared; an advisory lock, since
# there may be none.
# May run: administrator.
LOCK_HOOKS = "SELECT pg_advisory_xact_lock(hashtextextended('hooks', 0))"

# May run: administrator.
COUNT_HOOKS = "SELECT count(*) FROM chat.hooks"

# There is no unique index, because hooks of earlier versions may share a name.
# May run: administrator.
IS_NAME_TAKEN = "SELECT EXISTS (SELECT FROM chat.hooks WHERE name = $1 AND id <> $2)"

# May run: administrator.
INSERT_HOOK = f"""
    INSERT INTO chat.hooks (id, name, url, events, tools, timeout_ms, fail_policy, is_disabled,
        sealed, sealed_key_id, version, request_hash, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 1, $11, clock_timestamp())
    RETURNING {_COLUMNS}
"""

# A stored hook with its secret, for a repeated request.
# May run: administrator.
SELECT_REPEATED = f"""
    SELECT {_COLUMNS}, request_hash, sealed, sealed_key_id FROM chat.hooks WHERE id = $1
"""

# May run: checked by LOCK_HOOK.
UPDATE_HOOK = f"""
    UPDATE chat.hooks SET name = $2, url = $3, events = $4, tools = $5, timeout_ms = $6,
        fail_policy = $7, is_disabled = $8, version = version + 1
    WHERE id = $1 RETURNING {_COLUMNS}
"""

# The secrets of a hook, for a delivery.
# May run: process.
SELECT_SECRETS = """
    SELECT sealed, sealed_key_id, previous_sealed, previous_sealed_key_id,
        previous_until > clock_timestamp() AS has_previous
    FROM chat.hooks WHERE id = $1
"""

# May run: administrator.
LOCK_SECRET = f"""
    SELECT {_COLUMNS}, sealed, sealed_key_id, rotation_hash FROM chat.hooks WHERE id = $1 FOR UPDATE
"""

# May run: checked by LOCK_SECRET.
ROTATE_SECRET = f"""
    UPDATE chat.hooks SET sealed = $2, sealed_key_id = $3, previous_sealed = $4,
        previous_sealed_key_id = $5, previous_until = clock_timestamp() + $6::interval,
        rotation_hash = $7, version = version + 1
    WHERE id = $1 RETURNING {_COLUMNS}
"""

# May run: administrator.
DELETE_HOOK = "DELETE FROM chat.hooks WHERE id = $1 RETURNING id"


class PostgresHooks:
    """Stores hooks, and calls `changed` after the commit of each change."""

    def __init__(
        self, pool: Pool, box: SecretBox, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._pool = pool
        self._box = box
        self._changed = changed

    async def all(self) -> tuple[Hook, ...]:
        """Return the hooks, the oldest first."""
        return tuple(map(_hook_of, await self._pool.fetch(SELECT_HOOKS)))

    async def find(self, hook_id: str) -> Hook:
        """Return one hook.

        Raises:
            ResourceNotFound: There is none.
        """
        row = await self._pool.fetchrow(SELECT_HOOK, hook_id)
        if row is None:
            raise ResourceNotFound(RESOURCE, hook_id)
        return _hook_of(row)

    async def create(self, hook: Hook, secret: Secret, request_hash: bytes) -> tuple[Hook, Secret]:
        """Store a hook, or return the one that the same request stored, with its secret.

        Raises:
            TooManyHooks: There are as many as may be.
            NameTaken: Another one has the name.
            RequestIdReused: The request id was used for another body.
        """
        sealed = self._sealed(secret, hook.id, COLUMN)
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(LOCK_HOOKS)
            before = await connection.fetchrow(SELECT_REPEATED, hook.id)
            if before is not None:
                if before["request_hash"] != request_hash:
                    raise RequestIdReused(hook.id)
                return _hook_of(before), self._opened(before, hook.id)
            if await connection.fetchval(COUNT_HOOKS) >= HOOKS_MAX:
                raise TooManyHooks(HOOKS_MAX)
            if await connection.fetchval(IS_NAME_TAKEN, hook.name, hook.id):
                raise NameTaken(RESOURCE, hook.name)
            values = (*_values(hook), sealed.ciphertext, sealed.key_id, request_hash)
            row = await connection.fetchrow(INSERT_HOOK, *values)
            assert row is not None
            await record_event(connection, _event(AuditAction.HOOK_CREATED, hook))
        self._changed()
        return _hook_of(row), secret

    async def update(
        self, hook_id: str, edit: Callable[[Hook], Hook], expected_version: int | None
    ) -> Hook:
        """Update a hook with the result of `edit`.

        Raises:
            ResourceNotFound: There is none.
            VersionConflict: It was changed since that version.
            NameTaken: It gets a name that another one has.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(LOCK_HOOKS)
            row = await connection.fetchrow(LOCK_HOOK, hook_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, hook_id)
            if expected_version not in (None, row["version"]):
                raise VersionConflict(str(row["version"]))
            changed = edit(_hook_of(row))
            is_renamed = changed.name != row["name"]
            if is_renamed and await connection.fetchval(IS_NAME_TAKEN, changed.name, hook_id):
                raise NameTaken(RESOURCE, changed.name)
            row = await connection.fetchrow(UPDATE_HOOK, *_values(changed))
            assert row is not None  # It is locked.
            await record_event(connection, _event(AuditAction.HOOK_UPDATED, changed))
        self._changed()
        return _hook_of(row)

    async def delete(self, hook_id: str) -> None:
        """Delete a hook with its log.

        Raises:
            ResourceNotFound: There is none.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            if await connection.fetchval(DELETE_HOOK, hook_id) is None:
                raise ResourceNotFound(RESOURCE, hook_id)
            await record_event(connection, AuditEvent(AuditAction.HOOK_DELETED, hook_id))
        self._changed()

    async def record_test(self, hook_id: str) -> None:
        """Record in the audit log that somebody tests a hook."""
        async with self._pool.acquire() as connection, connection.transaction():
            await record_event(connection, AuditEvent(AuditAction.HOOK_TESTED, hook_id))

    async def rotate_secret(
        self, hook_id: str, secret: Secret, overlap: timedelta, request_hash: bytes
    ) -> tuple[Hook, Secret]:
        """Replace the secret of a hook, or return the one that the same request stored.

        One that cannot be decrypted is replaced as well, without an overlap.

        Raises:
            ResourceNotFound: There is no such hook.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(LOCK_SECRET, hook_id)
            if row is None:
                raise ResourceNotFound(RESOURCE, hook_id)
            if row["rotation_hash"] == request_hash:
                return _hook_of(row), self._opened(row, hook_id)
            new = self._sealed(secret, hook_id, COLUMN)
            old = self._resealed(row, hook_id) if overlap else None
            overlap = timedelta() if old is None else overlap
            kept = (None, None) if old is None else (old.ciphertext, old.key_id)
            values = (new.ciphertext, new.key_id, *kept, overlap, request_hash)
            row = await connection.fetchrow(ROTATE_SECRET, hook_id, *values)
            assert row is not None  # It is locked.
            details = {"overlap_s": str(round(overlap.total_seconds()))}
            event = AuditEvent(AuditAction.HOOK_SECRET_ROTATED, hook_id, details=details)
            await record_event(connection, event)
        self._changed()
        return _hook_of(row), secret

    async def secrets(self, hook_id: str) -> tuple[Secret, ...]:
        """Return the secrets that sign a delivery to a hook, the newest first.

        Raises:
            ResourceNotFound: The hook was deleted.
        """
        row = await self._pool.fetchrow(SELECT_SECRETS, hook_id)
        if row is None:
            raise ResourceNotFound(RESOURCE, hook_id)
        columns = (COLUMN, PREVIOUS_COLUMN) if row["has_previous"] else (COLUMN,)
        return tuple(self._opened(row, hook_id, each) for each in columns if row[each] is not None)

    def _sealed(self, secret: Secret, hook_id: str, column: str) -> Sealed:
        plain = secret.reveal().encode()
        return self._box.seal(plain, table=TABLE, column=column, row_id=hook_id)

    def _resealed(self, row: asyncpg.Record, hook_id: str) -> Sealed | None:
        """Return the secret as the previous one; None for one that cannot sign any more."""
        try:
            return self._sealed(self._opened(row, hook_id), hook_id, PREVIOUS_COLUMN)
        except SecretsError as unreadable:
            logger.warning("a hook's secret is replaced without an overlap: %s", unreadable)
            return None

    def _opened(self, row: asyncpg.Record, hook_id: str, column: str = COLUMN) -> Secret:
        sealed = Sealed(row[column], row[f"{column}_key_id"])
        plain = self._box.open(sealed, table=TABLE, column=column, row_id=hook_id)
        return Secret(plain.decode())


def new_hook_id(user_id: str, key: str) -> str:
    """Derive the id of a hook from its request, so that a repeated request finds it."""
    return str(uuid.uuid5(uuid.UUID(user_id), f"hook {key}"))


def _event(action: AuditAction, hook: Hook) -> AuditEvent:
    details = {"events": " ".join(sorted(hook.events)), "fail_policy": hook.fail_policy.value}
    return AuditEvent(action, hook.id, details=details)


def _values(hook: Hook) -> tuple[object, ...]:
    return (
        hook.id,
        hook.name,
        hook.url,
        sorted(hook.events),
        list(hook.tools),
        hook.timeout_ms,
        hook.fail_policy,
        hook.is_disabled,
    )


def _hook_of(row: asyncpg.Record) -> Hook:
    return Hook(
        id=str(row["id"]),
        name=row["name"],
        url=row["url"],
        events=frozenset(map(HookEvent, row["events"])),
        tools=tuple(row["tools"]),
        timeout_ms=row["timeout_ms"],
        fail_policy=FailPolicy(row["fail_policy"]),
        is_disabled=row["is_disabled"],
        version=row["version"],
        created_at=row["created_at"],
        previous_secret_until=row["previous_until"],
    )
