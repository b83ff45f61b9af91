"""Models and overrides in PostgreSQL."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import asyncpg

from chatd.models.domain.catalogue import Model, ModelOverride, Purpose
from chatd.models.store.config_version import ConfigChanges
from chatd.models.store.rows import MODEL_COLUMNS, model_arguments, model_of
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

# Insert a model of a live provider, for administrators; an existing id is the same request.
# May run: administrator.
INSERT_MODEL = f"""
    INSERT INTO chat.models (id, provider_id, name, display_name, is_enabled, is_default,
        context_limit_tokens, output_limit_tokens, threshold_percent, default_effort, max_effort,
        input_price, output_price, cache_read_price, cache_write_price, options, version,
        request_hash, created_at)
    SELECT $1, live.id, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
        $16::text::json, 1, $17, clock_timestamp()
    FROM chat.providers live WHERE live.id = $2 AND live.deleted_at IS NULL
    ON CONFLICT (id) DO NOTHING RETURNING {MODEL_COLUMNS}
"""

# A live model, locked for update; for administrators.
# May run: administrator.
LOCK_MODEL = f"""
    SELECT {MODEL_COLUMNS} FROM chat.models WHERE id = $1 AND deleted_at IS NULL FOR UPDATE
"""

# There is one default: the flag of the others is cleared first.
# May run: administrator.
CLEAR_DEFAULT = """
    UPDATE chat.models SET is_default = false, version = version + 1 WHERE is_default AND id <> $1
"""

# Update a model, for administrators; its provider stays, because messages refer to it.
# May run: administrator.
UPDATE_MODEL = f"""
    UPDATE chat.models SET name = $3, display_name = $4, is_enabled = $5, is_default = $6,
        context_limit_tokens = $7, output_limit_tokens = $8, threshold_percent = $9,
        default_effort = $10, max_effort = $11, input_price = $12, output_price = $13,
        cache_read_price = $14, cache_write_price = $15, options = $16::text::json,
        version = version + 1
    WHERE id = $1 AND provider_id = $2 AND deleted_at IS NULL RETURNING {MODEL_COLUMNS}
"""

# Mark a model as deleted; its row stays for its messages.
# May run: administrator.
DELETE_MODEL = """
    UPDATE chat.models SET deleted_at = clock_timestamp(), is_default = false, version = version + 1
    WHERE id = $1 AND deleted_at IS NULL RETURNING id
"""

# Set or delete the override of a purpose; for administrators.
# May run: administrator.
UPSERT_OVERRIDE = """
    INSERT INTO chat.model_overrides (purpose, model_id, reasoning_effort) VALUES ($1, $2, $3)
    ON CONFLICT (purpose) DO UPDATE
        SET model_id = excluded.model_id, reasoning_effort = excluded.reasoning_effort
"""
# May run: administrator.
DELETE_OVERRIDE = "DELETE FROM chat.model_overrides WHERE purpose = $1"


class Models:
    """Stores models."""

    def __init__(self, changes: ConfigChanges) -> None:
        self._changes = changes

    async def create(self, model: Model, request_hash: bytes) -> Model:
        """Store a model, or return the one that the same request stored.

        Raises:
            ResourceNotFound: There is no such provider, or the model was deleted since.
            NameTaken: Another one of the provider has the name.
            RequestIdReused: The request id was used for another body.
        """
        async with self._changes.change() as connection:
            if model.is_default:
                await connection.execute(CLEAR_DEFAULT, model.id)
            with _names_taken(model):
                row = await connection.fetchrow(INSERT_MODEL, *model_arguments(model), request_hash)
            if row is None:
                row = await self._stored(connection, model)
                if row["request_hash"] != request_hash:
                    raise RequestIdReused(model.id)
            else:
                await record_event(connection, _event(AuditAction.MODEL_CREATED, model))
        return model_of(row)

    async def update(
        self, model_id: str, edit: Callable[[Model], Model], expected_version: int | None = None
    ) -> Model:
        """Update a model with the result of `edit`.

        Raises:
            ResourceNotFound: There is none.
            VersionConflict: It was changed since that version.
            NameTaken: Another one of the provider has the name.
        """
        async with self._changes.change() as connection:
            stored = await connection.fetchrow(LOCK_MODEL, model_id)
            if stored is None:
                raise ResourceNotFound("model", model_id)
            if expected_version not in (None, stored["version"]):
                raise VersionConflict(str(stored["version"]))
            model = edit(model_of(stored))
            if model.is_default:
                await connection.execute(CLEAR_DEFAULT, model.id)
            with _names_taken(model):
                row = await connection.fetchrow(UPDATE_MODEL, *model_arguments(model))
            await record_event(connection, _event(AuditAction.MODEL_UPDATED, model))
        assert row is not None  # It was locked.
        return model_of(row)

    async def delete(self, model_id: str) -> None:
        """Delete a model, if it exists."""
        async with self._changes.change() as connection:
            if await connection.fetchval(DELETE_MODEL, model_id) is not None:
                await record_event(connection, AuditEvent(AuditAction.MODEL_DELETED, model_id))

    async def set_override(self, override: ModelOverride) -> None:
        """Set the model override of a purpose."""
        async with self._changes.change() as connection:
            await connection.execute(
                UPSERT_OVERRIDE, override.purpose, override.model_id, override.reasoning_effort
            )
            details = {"model_id": override.model_id}
            await record_event(
                connection,
                AuditEvent(AuditAction.MODEL_OVERRIDE_SET, override.purpose, details=details),
            )

    async def clear_override(self, purpose: Purpose) -> None:
        """Remove the model override of a purpose."""
        async with self._changes.change() as connection:
            await connection.execute(DELETE_OVERRIDE, purpose)
            await record_event(
                connection,
                AuditEvent(AuditAction.MODEL_OVERRIDE_SET, purpose, details={"model_id": ""}),
            )

    async def _stored(self, connection: Connection, model: Model) -> asyncpg.Record:
        """Return the row of an earlier request; if there is none, the provider does not exist."""
        row = await connection.fetchrow(LOCK_MODEL, model.id)
        if row is None:
            raise ResourceNotFound("provider", model.provider_id)
        return row


def _event(action: AuditAction, model: Model) -> AuditEvent:
    details = {"provider_id": model.provider_id, "is_enabled": str(model.is_enabled).lower()}
    return AuditEvent(action, model.id, details=details)


@contextmanager
def _names_taken(model: Model) -> Iterator[None]:
    """Raise NameTaken if another model of the provider has the name."""
    try:
        yield
    except asyncpg.UniqueViolationError as violation:
        if violation.constraint_name != Constraint.MODELS_BY_LIVE_NAME:
            raise
        raise NameTaken("model", model.display_name) from violation
