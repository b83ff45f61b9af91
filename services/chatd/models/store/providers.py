"""Providers and their keys in PostgreSQL; a key is sealed here and opened only for a call."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import assert_never

import asyncpg

from chatd.models.domain.catalogue import Provider, ProviderKey
from chatd.models.domain.provider_keys import KeyEffect, ProviderChange, check_key_order
from chatd.models.store.config_version import CATALOGUE, ConfigChanges
from chatd.models.store.rows import (
    KEY_COLUMNS,
    PROVIDER_COLUMNS,
    key_of,
    provider_arguments,
    provider_of,
)
from chatd.primitives.domain.errors import (
    NameTaken,
    RequestIdReused,
    ResourceNotFound,
    VersionConflict,
)
from chatd.primitives.store.audit_outbox import record_event
from chatd.primitives.store.constraints import Constraint
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Connection
from parley.secrets import SecretBox
from parley.settings import Secret

TABLE = "chat.provider_keys"
COLUMN = "sealed"
HINT_CHARACTERS = 4
# A hint must not reveal a large part of the key.
HINTED_CHARACTERS_MIN = 12

# Insert a provider, for administrators; an existing id is a repeated request.
# May run: administrator.
INSERT_PROVIDER = f"""
    INSERT INTO chat.providers (id, name, display_name, type, base_url, is_enabled,
        user_keys_allowed, options, version, request_hash, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::json, 1, $9, clock_timestamp())
    ON CONFLICT (id) DO NOTHING RETURNING {PROVIDER_COLUMNS}
"""

# A live provider, locked for update; for administrators.
# May run: user.
LOCK_PROVIDER = f"""
    SELECT {PROVIDER_COLUMNS} FROM chat.providers WHERE id = $1 AND deleted_at IS NULL FOR UPDATE
"""

# Update a provider, for administrators.
# May run: administrator.
UPDATE_PROVIDER = f"""
    UPDATE chat.providers SET name = $2, display_name = $3, type = $4, base_url = $5,
        is_enabled = $6, user_keys_allowed = $7, options = $8::text::json, version = version + 1
    WHERE id = $1 AND deleted_at IS NULL RETURNING {PROVIDER_COLUMNS}
"""

# Mark a provider and its models as deleted; their rows stay for their messages.
# May run: administrator.
DELETE_PROVIDER = """
    UPDATE chat.providers SET deleted_at = clock_timestamp(), version = version + 1
    WHERE id = $1 AND deleted_at IS NULL RETURNING id
"""
# May run: administrator.
DELETE_MODELS_OF_PROVIDER = """
    UPDATE chat.models SET deleted_at = clock_timestamp(), is_default = false, version = version + 1
    WHERE provider_id = $1 AND deleted_at IS NULL
"""
# May run: administrator.
DELETE_KEYS_OF_PROVIDER = "DELETE FROM chat.provider_keys WHERE provider_id = $1"

# The installation's keys of a provider are removed; those of users stay.
# May run: administrator.
DELETE_SHARED_KEYS = """
    DELETE FROM chat.provider_keys WHERE provider_id = $1 AND user_id IS NULL
"""

# How many keys a provider has, those of users included.
# May run: administrator.
COUNT_KEYS = "SELECT count(*) FROM chat.provider_keys WHERE provider_id = $1"

# The installation's keys of a provider, for administrators.
# May run: administrator.
SELECT_KEYS = f"""
    SELECT {KEY_COLUMNS} FROM chat.provider_keys
    WHERE provider_id = $1 AND user_id IS NULL ORDER BY position, created_at
"""

# Number the installation's keys of a provider in the order of a list that names each of them.
# May run: administrator.
SET_KEY_ORDER = """
    UPDATE chat.provider_keys k SET position = given.position
    FROM unnest($2::uuid[]) WITH ORDINALITY AS given (id, position)
    WHERE k.id = given.id AND k.provider_id = $1 AND k.user_id IS NULL
"""

# A new version of a provider whose keys changed, for administrators.
# May run: administrator.
BUMP_PROVIDER = f"""
    UPDATE chat.providers SET version = version + 1
    WHERE id = $1 AND deleted_at IS NULL RETURNING {PROVIDER_COLUMNS}
"""

# Insert a key after the others of the same user, or of the installation.
# May run: owner, administrator.
INSERT_KEY = f"""
    INSERT INTO chat.provider_keys (id, provider_id, user_id, position, hint, sealed,
        sealed_key_id, request_hash, created_at)
    SELECT $1, $2, $3, 1 + coalesce(max(position), 0), $4, $5, $6, $7, clock_timestamp()
    FROM chat.provider_keys WHERE provider_id = $2 AND user_id IS NOT DISTINCT FROM $3
    ON CONFLICT (id) DO NOTHING RETURNING {KEY_COLUMNS}
"""

# A stored key, for a repeated request.
# May run: checked by made_id.
SELECT_KEY = f"SELECT {KEY_COLUMNS} FROM chat.provider_keys WHERE id = $1"

# Delete a key: the installation's for administrators, a user's own for that user.
# May run: owner, administrator.
DELETE_KEY = """
    DELETE FROM chat.provider_keys
    WHERE id = $1 AND (user_id = $2 OR (user_id IS NULL AND $3::boolean))
    RETURNING user_id
"""


@dataclass(frozen=True, slots=True)
class NewKey:
    """A key to store, with its value."""

    key: ProviderKey
    value: Secret
    request_hash: bytes


class Providers:
    """Stores providers and keys."""

    def __init__(self, changes: ConfigChanges, box: SecretBox) -> None:
        self._changes = changes
        self._box = box

    async def create(self, provider: Provider, request_hash: bytes) -> Provider:
        """Store a provider, or return the one that the same request stored.

        Raises:
            NameTaken: Another one has the name.
            RequestIdReused: The request id was used for another body.
            ResourceNotFound: The same request stored it, and it was deleted since.
        """
        async with self._changes.change() as connection:
            with _names_taken(provider):
                row = await connection.fetchrow(
                    INSERT_PROVIDER, *provider_arguments(provider), request_hash
                )
            if row is None:
                row = await self._lock(connection, provider.id)
                if row["request_hash"] != request_hash:
                    raise RequestIdReused(provider.id)
            else:
                await record_event(
                    connection, _provider_event(AuditAction.PROVIDER_CREATED, provider)
                )
            return await self._with_keys(connection, row)

    async def update(
        self,
        provider_id: str,
        edit: Callable[[Provider, int], ProviderChange],
        expected_version: int | None = None,
        new_key: NewKey | None = None,
    ) -> Provider:
        """Update a provider with the result of `edit`, which is called with its number of keys too.

        Raises:
            ResourceNotFound: There is none.
            VersionConflict: It was changed since that version.
            NameTaken: Another one has the name.
        """
        async with self._changes.change() as connection:
            stored = await self._lock(connection, provider_id)
            if expected_version not in (None, stored["version"]):
                raise VersionConflict(str(stored["version"]))
            change = edit(provider_of(stored), await connection.fetchval(COUNT_KEYS, provider_id))
            with _names_taken(change.provider):
                row = await connection.fetchrow(
                    UPDATE_PROVIDER, *provider_arguments(change.provider)
                )
            assert row is not None  # It is locked.
            match change.keys:
                case KeyEffect.KEEP:
                    pass
                case KeyEffect.REMOVE_SHARED:
                    await connection.execute(DELETE_SHARED_KEYS, provider_id)
                case KeyEffect.REMOVE_ALL:
                    await connection.execute(DELETE_KEYS_OF_PROVIDER, provider_id)
                case _:
                    assert_never(change.keys)
            if new_key is not None:
                await self._insert_key(connection, new_key)
            event = _provider_event(AuditAction.PROVIDER_UPDATED, change.provider)
            await record_event(connection, event)
            return await self._with_keys(connection, row)

    async def delete(self, provider_id: str) -> None:
        """Delete a provider, its models and its keys, if it exists."""
        async with self._changes.change() as connection:
            is_deleted = await connection.fetchval(DELETE_PROVIDER, provider_id) is not None
            await connection.execute(DELETE_MODELS_OF_PROVIDER, provider_id)
            await connection.execute(DELETE_KEYS_OF_PROVIDER, provider_id)
            if is_deleted:
                await record_event(
                    connection, AuditEvent(AuditAction.PROVIDER_DELETED, provider_id)
                )

    async def add_key(self, key: ProviderKey, value: Secret, request_hash: bytes) -> ProviderKey:
        """Seal and store a key, or return the one that the same request stored.

        Raises:
            ResourceNotFound: There is no such provider.
            RequestIdReused: The request id was used for another body.
        """
        async with self._changes.change(key.user_id or CATALOGUE) as connection:
            await self._lock(connection, key.provider_id)
            row = await self._insert_key(connection, NewKey(key, value, request_hash))
            if row is None:
                row = await connection.fetchrow(SELECT_KEY, key.id)
                if row is None or row["request_hash"] != request_hash:
                    raise RequestIdReused(key.id)
        return key_of(row)

    async def delete_key(self, key_id: str, *, user_id: str, is_administrator: bool) -> None:
        """Delete a key of the user's own, or one of the installation's for administrators.

        Raises:
            ResourceNotFound: There is no such key for this user.
        """
        async with self._changes.change() as connection:
            row = await connection.fetchrow(DELETE_KEY, key_id, user_id, is_administrator)
            if row is None:
                raise ResourceNotFound("key", key_id)
            holder = {"holder": "installation" if row["user_id"] is None else "user"}
            await record_event(
                connection, AuditEvent(AuditAction.PROVIDER_KEY_DELETED, key_id, details=holder)
            )

    async def order_keys(
        self, provider_id: str, key_ids: Sequence[str], expected_version: int | None = None
    ) -> Provider:
        """Change the order in which the installation's keys are tried; one that holds may be given.

        Raises:
            ResourceNotFound: There is no such provider.
            KeyOrderMismatch: The list does not name each key once.
            VersionConflict: The provider was changed since that version.
        """
        async with self._changes.change() as connection:
            stored = await self._lock(connection, provider_id)
            provider = await self._with_keys(connection, stored)
            stored_ids = [each.id for each in provider.keys]
            check_key_order(provider_id, stored_ids, key_ids)
            # Before the version: a repeated request finds its own work done.
            if stored_ids == list(key_ids):
                return provider
            if expected_version not in (None, provider.version):
                raise VersionConflict(str(provider.version))
            await connection.execute(SET_KEY_ORDER, provider_id, list(key_ids))
            row = await connection.fetchrow(BUMP_PROVIDER, provider_id)
            assert row is not None  # It is locked.
            event = AuditEvent(
                AuditAction.PROVIDER_KEYS_ORDERED, provider_id, details={"keys": str(len(key_ids))}
            )
            await record_event(connection, event)
            return await self._with_keys(connection, row)

    async def _insert_key(self, connection: Connection, new: NewKey) -> asyncpg.Record | None:
        """Seal, store and record a key; None if its id exists."""
        key = new.key
        value = new.value.reveal().encode()
        sealed = self._box.seal(value, table=TABLE, column=COLUMN, row_id=key.id)
        row = await connection.fetchrow(
            INSERT_KEY,
            key.id,
            key.provider_id,
            key.user_id or None,
            key.hint,
            sealed.ciphertext,
            sealed.key_id,
            new.request_hash,
        )
        if row is not None:
            holder = "user" if key.user_id else "installation"
            details = {"provider_id": key.provider_id, "holder": holder}
            await record_event(
                connection, AuditEvent(AuditAction.PROVIDER_KEY_ADDED, key.id, details=details)
            )
        return row

    async def _lock(self, connection: Connection, provider_id: str) -> asyncpg.Record:
        row = await connection.fetchrow(LOCK_PROVIDER, provider_id)
        if row is None:
            raise ResourceNotFound("provider", provider_id)
        return row

    async def _with_keys(
        self,
        connection: Connection,
        row: asyncpg.Record,
    ) -> Provider:
        keys = await connection.fetch(SELECT_KEYS, row["id"])
        return replace(provider_of(row), keys=tuple(map(key_of, keys)))


def _provider_event(action: AuditAction, provider: Provider) -> AuditEvent:
    details = {"type": provider.type.value, "is_enabled": str(provider.is_enabled).lower()}
    return AuditEvent(action, provider.id, details=details)


def hint_of(value: Secret) -> str:
    """Return the hint by which users recognise a key; empty for a short one."""
    text = value.reveal()
    return text[-HINT_CHARACTERS:] if len(text) >= HINTED_CHARACTERS_MIN else ""


@contextmanager
def _names_taken(provider: Provider) -> Iterator[None]:
    """Raise NameTaken if another provider has the name."""
    try:
        yield
    except asyncpg.UniqueViolationError as violation:
        if violation.constraint_name != Constraint.PROVIDERS_BY_LIVE_NAME:
            raise
        raise NameTaken("provider", provider.name) from violation
