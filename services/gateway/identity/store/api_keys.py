"""API keys of users in PostgreSQL, as their users and administrators manage them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, func, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.identity.domain import ApiKeyRecord
from gateway.identity.errors import (
    ApiKeyNotFound,
    SecretAlreadyShown,
    TooManyApiKeys,
    UserDeactivated,
)
from gateway.identity.store.schema import api_keys
from gateway.identity.store.users import locked_user
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.event import DETAIL_CHARACTERS_MAX
from parley.identity import ApiKey, UserId
from parley.postgres import Database

KEYS_MAX: Final = 100
LISTED_MAX: Final = 200


class ApiKeyStore:
    """The part of the schema `identity` for the keys of users."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    # May run: checked by _check_holder.
    async def add(
        self, record: ApiKeyRecord, key: ApiKey, *, created_by_user_id: UserId, request_id: str
    ) -> None:
        """Store a new key.

        Raises:
            UserNotFound: There is no such user.
            UserDeactivated: They are deactivated.
            SecretAlreadyShown: The request was made before.
            TooManyApiKeys: The user has as many keys as they may.
        """
        async with self._database.transaction() as connection:
            # Locked, so that two requests at once do not pass the limit together.
            user = await locked_user(connection, record.user_id)
            if not user.is_active:
                raise UserDeactivated(record.user_id)
            made_before = select(api_keys.c.id).where(
                api_keys.c.created_by_user_id == created_by_user_id,
                api_keys.c.request_id == request_id,
            )
            made_id = await connection.scalar(made_before)
            if made_id is not None:
                raise SecretAlreadyShown(made_id)
            good = (
                select(func.count())
                .select_from(api_keys)
                .where(api_keys.c.user_id == record.user_id, *_is_good(record.created_at))
            )
            if (await connection.scalar(good) or 0) >= KEYS_MAX:
                raise TooManyApiKeys(KEYS_MAX)
            await connection.execute(
                insert(api_keys).values(
                    id=key.id,
                    user_id=record.user_id,
                    digest=key.digest(),
                    is_from_setting=False,
                    created_at=record.created_at,
                    expires_at=record.expires_at,
                    name=record.name,
                    scopes=list(record.scopes),
                    created_by_user_id=created_by_user_id,
                    request_id=request_id,
                )
            )
            await self._audit_log.append(connection, _created(record, key))

    # May run: checked by _check_holder.
    async def list(
        self, user_id: str, *, include_ended: bool, now: datetime
    ) -> Sequence[ApiKeyRecord]:
        """Return the keys of a user, newest first."""
        found: Select[Any] = select(api_keys).where(api_keys.c.user_id == user_id)
        if not include_ended:
            found = found.where(*_is_good(now))
        ordered = found.order_by(api_keys.c.created_at.desc(), api_keys.c.id).limit(LISTED_MAX)
        async with self._database.reading() as connection:
            rows = await connection.execute(ordered)
            return tuple(_api_key(row) for row in rows.mappings())

    # May run: checked by _check_holder.
    async def revoke(self, user_id: str, key_id: str, now: datetime) -> ApiKeyRecord:
        """Revoke a key of a user; a revoked one stays so.

        Raises:
            ApiKeyNotFound: The user has no such key, or it comes from a setting.
        """
        is_named = (
            (api_keys.c.user_id == user_id)
            & (api_keys.c.id == key_id)
            # Such a key would be good again at the next start.
            & api_keys.c.is_from_setting.is_(False)
        )
        revoked = (
            update(api_keys)
            .where(is_named, api_keys.c.revoked_at.is_(None))
            .values(revoked_at=now)
            .returning(api_keys.c.id)
        )
        async with self._database.transaction() as connection:
            is_changed = (await connection.execute(revoked)).first() is not None
            row = (await connection.execute(select(api_keys).where(is_named))).mappings().first()
            if row is None:
                raise ApiKeyNotFound(key_id)
            if is_changed:
                await self._audit_log.append(
                    connection, AuditEvent(AuditAction.API_KEY_REVOKED, key_id, user_id)
                )
        return _api_key(row)


def _created(record: ApiKeyRecord, key: ApiKey) -> AuditEvent:
    expires_at = record.expires_at
    details = {
        "scopes": ",".join(record.scopes)[:DETAIL_CHARACTERS_MAX],
        "expires_at": "" if expires_at is None else expires_at.isoformat(),
    }
    return AuditEvent(AuditAction.API_KEY_CREATED, key.id, record.user_id, details=details)


def _is_good(now: datetime) -> tuple[Any, ...]:
    is_unexpired = or_(api_keys.c.expires_at.is_(None), api_keys.c.expires_at > now)
    return api_keys.c.revoked_at.is_(None), is_unexpired


def _api_key(row: Any) -> ApiKeyRecord:
    return ApiKeyRecord(
        id=row["id"],
        user_id=UserId(str(row["user_id"])),
        name=row["name"],
        scopes=tuple(row["scopes"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        last_used_at=row["last_used_at"],
        revoked_at=row["revoked_at"],
        is_from_setting=row["is_from_setting"],
    )
