"""Settings in PostgreSQL: one row for each changed setting, the installation's under no user."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import TypeVar

import msgspec

from chatd.models.domain.catalogue import ModelOverride
from chatd.models.domain.own_model import OwnModel, OwnPurpose
from chatd.models.domain.preferences import AdvisorSettings, InstallationSettings, UserSettings
from chatd.models.store.config_version import CATALOGUE, ConfigChanges
from chatd.models.store.models import DELETE_OVERRIDE, UPSERT_OVERRIDE
from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.store.audit_outbox import record_event
from chatd.primitives.store.rows import Row
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.event import DETAIL_CHARACTERS_MAX
from parley.postgres import Connection

INSTALLATION = "00000000-0000-0000-0000-000000000000"

T = TypeVar("T", InstallationSettings, UserSettings)

# Changed settings of the installation, or of a user for that user.
# May run: owner, administrator, process.
SELECT_SETTINGS = "SELECT name, value::text AS value FROM chat.settings WHERE scope = $1"

# Set some; an administrator's or the user's own.
# May run: owner, administrator.
UPSERT_SETTINGS = """
    INSERT INTO chat.settings (scope, name, value)
    SELECT $1, name, value::json FROM unnest($2::text[], $3::text[]) AS new (name, value)
    ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value
"""


class Preferences:
    """Stores settings."""

    def __init__(self, changes: ConfigChanges) -> None:
        self._changes = changes

    async def installation(self) -> InstallationSettings:
        """Return the settings of the installation."""
        return installation_of(await self._changes.pool.fetch(SELECT_SETTINGS, INSTALLATION))

    async def user(self, user_id: OwnerId) -> UserSettings:
        """Return the settings of one user."""
        return user_of(await self._changes.pool.fetch(SELECT_SETTINGS, user_id))

    async def change_installation(self, changes: Mapping[str, object]) -> InstallationSettings:
        """Change some settings of the installation, by their field names."""
        return installation_of(await self._change(INSTALLATION, CATALOGUE, changes))

    async def set_advisor(self, settings: AdvisorSettings, override: ModelOverride) -> None:
        """Replace the settings of the advisor together with its model; an empty one is removed."""
        value = msgspec.json.encode(settings).decode()
        async with self._changes.change() as connection:
            await connection.execute(UPSERT_SETTINGS, INSTALLATION, ["advisor"], [value])
            if override.model_id:
                await connection.execute(
                    UPSERT_OVERRIDE, override.purpose, override.model_id, override.reasoning_effort
                )
            else:
                await connection.execute(DELETE_OVERRIDE, override.purpose)
            await _record(connection, ("advisor",))

    async def change_user(self, user_id: OwnerId, changes: Mapping[str, object]) -> UserSettings:
        """Change some settings of one user, by their field names."""
        return user_of(await self._change(user_id, user_id, changes))

    async def set_own_model(self, user_id: OwnerId, purpose: OwnPurpose, own: OwnModel) -> None:
        """Replace the own model of a user for one purpose."""
        await self._change(user_id, user_id, {f"{purpose}_model": own})

    async def _change(self, scope: str, what: str, changes: Mapping[str, object]) -> Iterable[Row]:
        values = [msgspec.json.encode(value).decode() for value in changes.values()]
        async with self._changes.change(what) as connection:
            await connection.execute(UPSERT_SETTINGS, scope, list(changes), values)
            if scope == INSTALLATION and changes:
                await _record(connection, changes)
            rows: Iterable[Row] = await connection.fetch(SELECT_SETTINGS, scope)
            return rows


async def _record(connection: Connection, names: Iterable[str]) -> None:
    """Record which settings changed; values such as a system prompt are content."""
    details = {"names": ",".join(sorted(names))[:DETAIL_CHARACTERS_MAX]}
    await record_event(connection, AuditEvent(AuditAction.SETTINGS_UPDATED, details=details))


def installation_of(rows: Iterable[Row]) -> InstallationSettings:
    """Return the installation's settings from rows; missing ones have their defaults."""
    return _settings_of(rows, InstallationSettings)


def user_of(rows: Iterable[Row]) -> UserSettings:
    """Return a user's settings from rows; missing ones have their defaults."""
    return _settings_of(rows, UserSettings)


def _settings_of(rows: Iterable[Row], kind: type[T]) -> T:
    known = {field.name for field in fields(kind)}
    values = {
        row["name"]: msgspec.json.decode(row["value"]) for row in rows if row["name"] in known
    }
    return msgspec.convert(values, kind)
