"""Users and their credentials in PostgreSQL.

Credentials are read on every request, so those statements use asyncpg; the rest is SQLAlchemy Core.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import or_, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.identity.domain import (
    StoredApiKey,
    StoredSession,
    UserKind,
    UserRecord,
    UserState,
)
from gateway.identity.store.schema import (
    api_keys,
    group_members,
    users,
)
from parley.audit_log import AuditAction, AuditEvent
from parley.identity import ApiKey, Role, User, UserId
from parley.postgres import Database, DatabaseUnavailable

OWNER_LOGIN = "owner"
OWNER_NAME = "Owner"

USER_COLUMNS = """
    u.id AS user_id, u.login, u.display_name, u.email, u.role, u.state, u.version, u.created_at,
    u.updated_at, u.deactivated_at, u.kind
"""
# May run: credential.
SELECT_API_KEY = f"""
    SELECT k.id, k.digest, k.scopes, k.expires_at, k.last_used_at, k.revoked_at, {USER_COLUMNS}
    FROM identity.api_keys k JOIN identity.users u ON u.id = k.user_id WHERE k.id = $1
"""
# May run: credential.
SELECT_SESSION = f"""
    SELECT s.id, s.last_seen_at, s.expires_at, {USER_COLUMNS}
    FROM identity.sessions s JOIN identity.users u ON u.id = s.user_id WHERE s.digest = $1
"""
# May run: process.
SELECT_USERS_OF_API_KEYS = """
    SELECT k.id, u.id AS user_id, u.role
    FROM identity.api_keys k JOIN identity.users u ON u.id = k.user_id
    WHERE k.id = ANY($1) AND k.revoked_at IS NULL AND u.state = 'active'
        AND (k.expires_at IS NULL OR k.expires_at > $2)
"""
# May run: process.
SELECT_USERS_OF_SESSIONS = """
    SELECT s.id::text AS id, u.id AS user_id, u.role
    FROM identity.sessions s JOIN identity.users u ON u.id = s.user_id
    WHERE s.id = ANY($1::uuid[]) AND s.expires_at > $2 AND u.state = 'active'
"""
# May run: credential.
TOUCH_API_KEY = """
    UPDATE identity.api_keys SET last_used_at = $2
    WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < $2)
"""
# May run: credential.
TOUCH_SESSION = """
    UPDATE identity.sessions SET last_seen_at = $2 WHERE digest = $1 AND last_seen_at < $2
"""


class IdentityStore:
    """The part of the schema `identity` for users and credentials."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    async def ping(self) -> None:
        """Check that the database responds.

        Raises:
            DatabaseUnavailable: It does not respond.
        """
        try:
            await self._database.pool.fetchval("SELECT 1")
        except asyncpg.PostgresError as error:
            raise DatabaseUnavailable(str(error)) from error

    # May run: process.
    async def ensure_owner(self, *, new_user_id: str, key: ApiKey, now: datetime) -> UserRecord:
        """Create the owner and their `key` if necessary; return the owner.

        A key from an earlier setting that is no longer configured is revoked. Any number of
        gateways may do this at once.
        """
        async with self._database.transaction() as connection:
            await connection.execute(
                text("SELECT pg_advisory_xact_lock(hashtextextended('parley owner', 0))")
            )
            owner = await _owner(connection)
            if owner is None:
                await connection.execute(
                    insert(users).values(
                        id=new_user_id,
                        login=OWNER_LOGIN,
                        display_name=OWNER_NAME,
                        role=Role.OWNER,
                        state=UserState.ACTIVE,
                        version=1,
                        created_at=now,
                        updated_at=now,
                    )
                )
                owner = await _owner(connection)
                assert owner is not None
                created = AuditEvent(
                    AuditAction.USER_CREATED,
                    owner.id,
                    owner.id,
                    details={"role": owner.role.value, "kind": owner.kind.value},
                )
                await self._audit_log.append(connection, created)
            for event in await _set_owner_key(connection, owner.id, key, now):
                await self._audit_log.append(connection, event)
            return owner

    async def find_api_key(self, key_id: str) -> StoredApiKey | None:
        """Return the key with this id, in any state."""
        row = await self._database.pool.fetchrow(SELECT_API_KEY, key_id)
        if row is None:
            return None
        return StoredApiKey(
            id=row["id"],
            digest=row["digest"],
            user=_user(row),
            scopes=frozenset(row["scopes"]),
            expires_at=row["expires_at"],
            last_used_at=row["last_used_at"],
            revoked_at=row["revoked_at"],
        )

    async def touch_api_key(self, key_id: str, now: datetime) -> None:
        """Record that the key was used."""
        await self._database.pool.execute(TOUCH_API_KEY, key_id, now)

    async def find_session(self, digest: bytes) -> StoredSession | None:
        """Return the session whose token has this digest, even if it has expired."""
        row = await self._database.pool.fetchrow(SELECT_SESSION, digest)
        if row is None:
            return None
        return StoredSession(str(row["id"]), _user(row), row["last_seen_at"], row["expires_at"])

    async def touch_session(self, digest: bytes, now: datetime) -> None:
        """Record that the session was used."""
        await self._database.pool.execute(TOUCH_SESSION, digest, now)

    async def users_of_api_keys(self, key_ids: Sequence[str], now: datetime) -> Mapping[str, User]:
        """Return the user of each of the keys that is valid."""
        return await self._users(SELECT_USERS_OF_API_KEYS, key_ids, now)

    async def users_of_sessions(self, ids: Sequence[str], now: datetime) -> Mapping[str, User]:
        """Return the user of each of the sessions that is valid."""
        return await self._users(SELECT_USERS_OF_SESSIONS, ids, now)

    # May run: process.
    async def _users(
        self, statement: str, credentials: Sequence[object], now: datetime
    ) -> Mapping[str, User]:
        if not credentials:
            return {}
        rows = await self._database.pool.fetch(statement, credentials, now)
        return {row["id"]: User(UserId(str(row["user_id"])), Role(row["role"])) for row in rows}

    async def find_owner(self) -> UserRecord | None:
        """Return the oldest active owner."""
        async with self._database.reading() as connection:
            return await _owner(connection)

    async def find_user(self, user_id: str) -> UserRecord | None:
        """Return one user, deleted or not."""
        found = await self.find_users((user_id,))
        return found[0] if found else None

    # May run: user, service.
    async def find_users(self, user_ids: Sequence[str]) -> tuple[UserRecord, ...]:
        """Return the existing ones of these users, deleted ones included, unordered."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(select(users).where(users.c.id.in_(user_ids)))
            return tuple(user_of_table(row) for row in rows.mappings())

    # May run: process.
    async def names(self, user_ids: Sequence[str] | None) -> Mapping[str, str]:
        """Return the names of these users, or of all, deleted ones included, by their ids."""
        named = select(users.c.id, users.c.display_name)
        if user_ids is not None:
            named = named.where(users.c.id.in_(user_ids))
        async with self._database.reading() as connection:
            rows = await connection.execute(named)
            return {str(row.id): row.display_name for row in rows}

    # May run: user.
    async def find_people(self, query: str, limit: int) -> tuple[UserRecord, ...]:
        """Return active users whose login or shown name contains a text; never by email address."""
        names = (users.c.login, users.c.display_name)
        begins = or_(*(name.istartswith(query, autoescape=True) for name in names))
        contains = or_(*(name.icontains(query, autoescape=True) for name in names))
        found = (
            select(users)
            .where(users.c.state == UserState.ACTIVE, contains)
            .order_by(begins.desc(), users.c.login)
            .limit(limit)
        )
        async with self._database.reading() as connection:
            rows = await connection.execute(found)
            return tuple(user_of_table(row) for row in rows.mappings())

    # May run: administrator.
    async def list_users(
        self,
        *,
        after_login: str,
        limit: int,
        state: UserState | None = None,
        query: str = "",
        group_id: str = "",
    ) -> tuple[UserRecord, ...]:
        """Return users whose login follows `after_login`, ordered by login."""
        exists = users.c.state != UserState.DELETED
        listed = select(users).where(users.c.login > after_login, exists)
        if state is not None:
            listed = listed.where(users.c.state == state)
        if query:
            fields = (users.c.login, users.c.display_name, users.c.email)
            matches = (field.icontains(query, autoescape=True) for field in fields)
            listed = listed.where(or_(*matches))
        if group_id:
            members = select(group_members.c.user_id).where(group_members.c.group_id == group_id)
            listed = listed.where(users.c.id.in_(members))
        async with self._database.transaction() as connection:
            rows = await connection.execute(listed.order_by(users.c.login).limit(limit))
            return tuple(user_of_table(row) for row in rows.mappings())


# May run: process.
async def _owner(connection: AsyncConnection) -> UserRecord | None:
    """Return the oldest active owner."""
    rows = await connection.execute(
        select(users)
        .where(users.c.role == Role.OWNER, users.c.state == UserState.ACTIVE)
        .order_by(users.c.created_at, users.c.id)
        .limit(1)
    )
    row = rows.mappings().first()
    return None if row is None else user_of_table(row)


# May run: process.
async def _set_owner_key(
    connection: AsyncConnection, owner_id: str, key: ApiKey, now: datetime
) -> tuple[AuditEvent, ...]:
    """Let the key of the setting count; return the events of what changed."""
    revoked = await connection.execute(
        update(api_keys)
        .where(api_keys.c.is_from_setting, api_keys.c.id != key.id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now)
        .returning(api_keys.c.id)
    )
    is_known = await connection.scalar(
        select(api_keys.c.id).where(api_keys.c.id == key.id, api_keys.c.revoked_at.is_(None))
    )
    values = {"user_id": owner_id, "digest": key.digest(), "revoked_at": None}
    await connection.execute(
        insert(api_keys)
        .values(id=key.id, is_from_setting=True, created_at=now, **values)
        .on_conflict_do_update(
            index_elements=[api_keys.c.id], set_=values, where=api_keys.c.is_from_setting
        )
    )
    ended = (
        AuditEvent(AuditAction.API_KEY_REVOKED, key_id, owner_id) for key_id in revoked.scalars()
    )
    if is_known is not None:
        return tuple(ended)
    made = AuditEvent(
        AuditAction.API_KEY_CREATED, key.id, owner_id, details={"from_setting": "true"}
    )
    return (*ended, made)


def user_of_table(row: Any) -> UserRecord:
    """Convert a row of the table to a user."""
    return _user({**row, "user_id": row["id"]})


def _user(row: Any) -> UserRecord:
    return UserRecord(
        id=UserId(str(row["user_id"])),
        login=row["login"],
        display_name=row["display_name"],
        email=row["email"],
        role=Role(row["role"]),
        state=UserState(row["state"]),
        version=row["version"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        deactivated_at=row["deactivated_at"],
        kind=UserKind(row["kind"]),
    )
