"""Changes of users in PostgreSQL; each is one transaction with all dependent rows."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy import func, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.constraints import Constraint
from gateway.identity.domain import UserRecord, UserState
from gateway.identity.errors import (
    LastOwner,
    LoginTaken,
    UserNotFound,
    UserStillActive,
    VersionConflict,
)
from gateway.identity.store.credentials import user_of_table
from gateway.identity.store.memberships import replace_groups
from gateway.identity.store.revocation import (
    end_sessions,
    erase_credentials,
    revoke_api_keys,
    revoke_links,
)
from gateway.identity.store.schema import users
from gateway.identity.store.service_tokens import forget_names, revoke_all
from parley.audit_log import AuditAction, AuditEvent
from parley.identity import Role
from parley.postgres import Database


class UserStore:
    """The part of the schema `identity` for changes of users."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    # May run: administrator.
    async def add(
        self, user: UserRecord, *, creation_request: str, group_ids: tuple[str, ...] = ()
    ) -> UserRecord:
        """Store a new user, or return the one that the same request created before.

        Raises:
            LoginTaken: Another user has the login.
            GroupNotFound: There is no such group.
        """
        made = insert(users).values(
            id=user.id,
            login=user.login,
            display_name=user.display_name,
            email=user.email,
            role=user.role,
            state=user.state,
            version=user.version,
            created_at=user.created_at,
            updated_at=user.updated_at,
            creation_request=creation_request,
            kind=user.kind,
        )
        same = select(users).where(users.c.creation_request == creation_request)
        try:
            async with self._database.transaction() as connection:
                added = await connection.execute(
                    made.on_conflict_do_nothing(
                        index_elements=[users.c.creation_request]
                    ).returning(users.c.id)
                )
                if added.first() is not None:
                    await replace_groups(connection, user.id, group_ids, now=user.created_at)
                    await self._audit_log.append(connection, user_created(user))
                return user_of_table((await connection.execute(same)).mappings().one())
        except IntegrityError as error:
            if Constraint.USERS_LOGIN_UNIQUE not in str(error.orig):
                raise
            raise LoginTaken(user.login) from error

    async def change(
        self,
        user_id: str,
        values: Mapping[str, object],
        *,
        expected_version: int,
        now: datetime,
        group_ids: tuple[str, ...] | None = None,
    ) -> UserRecord:
        """Change some fields, and the groups unless `group_ids` is None.

        A new role ends sessions, and revokes the tokens with the old one.

        Raises:
            UserNotFound: There is no such user.
            GroupNotFound: There is no such group.
            VersionConflict: It changed since it was read.
            LoginTaken: Another user has the login.
            LastOwner: No active owner would be left.
        """
        try:
            async with self._database.transaction() as connection:
                user = await locked_user(connection, user_id)
                if expected_version not in (0, user.version):
                    raise VersionConflict(user.version)
                role = values.get("role", user.role)
                if role != user.role:
                    await _check_owner_remains(connection, user)
                    await revoke_all(connection, user_id, now)
                    await end_sessions(connection, user_id)
                if group_ids is not None:
                    await replace_groups(connection, user.id, group_ids, now=now)
                changed = await write_user(connection, user, values, now)
                fields = (*values, *(() if group_ids is None else ("group_ids",)))
                await self._audit_log.append(connection, _updated(user, changed, fields))
                return changed
        except IntegrityError as error:
            if Constraint.USERS_LOGIN_UNIQUE not in str(error.orig):
                raise
            raise LoginTaken(str(values.get("login"))) from error

    async def deactivate(self, user_id: str, *, now: datetime) -> UserRecord:
        """Deactivate a user: their sessions, keys and tokens become invalid.

        Raises:
            UserNotFound: There is no such user.
            LastOwner: No active owner would be left.
        """
        async with self._database.transaction() as connection:
            user = await locked_user(connection, user_id)
            if not user.is_active:
                return user
            await _check_owner_remains(connection, user)
            await end_sessions(connection, user_id)
            await revoke_links(connection, user_id, now)
            await revoke_api_keys(connection, user_id, now)
            await revoke_all(connection, user_id, now)
            locked_out = {"state": UserState.DEACTIVATED, "deactivated_at": now}
            changed = await write_user(connection, user, locked_out, now)
            await self._audit_log.append(
                connection, AuditEvent(AuditAction.USER_DEACTIVATED, user.id, user.id)
            )
            return changed

    async def erase(self, user_id: str, *, now: datetime) -> UserRecord:
        """Delete everything but the id of a deactivated user.

        Raises:
            UserNotFound: There is no such user.
            UserStillActive: They are still active.
        """
        async with self._database.transaction() as connection:
            user = await locked_user(connection, user_id, also_deleted=True)
            if user.state is UserState.DELETED:
                return user
            if user.is_active:
                raise UserStillActive(user_id)
            await erase_credentials(connection, user_id)
            await forget_names(connection, user_id)
            await replace_groups(connection, user.id, (), now=now)
            values = {
                "state": UserState.DELETED,
                "login": f"deleted-{user_id}",
                "display_name": "Deleted user",
                "email": "",
                "creation_request": None,
            }
            changed = await write_user(connection, user, values, now)
            await self._audit_log.append(
                connection, AuditEvent(AuditAction.USER_DELETED, user.id, user.id)
            )
            await self._audit_log.erase(connection, user.id)
            return changed


def user_created(user: UserRecord) -> AuditEvent:
    """Return the event of a new user."""
    details = {"role": user.role.value, "kind": user.kind.value}
    return AuditEvent(AuditAction.USER_CREATED, user.id, user.id, details=details)


def _updated(before: UserRecord, after: UserRecord, fields: tuple[str, ...]) -> AuditEvent:
    details = {"fields": ",".join(sorted(fields))}
    if before.role is not after.role:
        details |= {"old_role": before.role.value, "role": after.role.value}
    if before.state is not after.state:
        details |= {"state": after.state.value}
    return AuditEvent(AuditAction.USER_UPDATED, after.id, after.id, details=details)


# May run: administrator.
async def locked_user(
    connection: AsyncConnection, user_id: str, *, also_deleted: bool = False
) -> UserRecord:
    """Return a user, with the row locked until the transaction ends.

    Raises:
        UserNotFound: There is no such user.
    """
    rows = await connection.execute(select(users).where(users.c.id == user_id).with_for_update())
    row = rows.mappings().first()
    user = None if row is None else user_of_table(row)
    if user is None or (user.state is UserState.DELETED and not also_deleted):
        raise UserNotFound(user_id)
    return user


# May run: administrator.
async def _check_owner_remains(connection: AsyncConnection, user: UserRecord) -> None:
    """Reject the loss of the last active owner; changes of owners are serialised."""
    if user.role is not Role.OWNER or not user.is_active:
        return
    await connection.execute(
        text("SELECT pg_advisory_xact_lock(hashtextextended('parley owner', 0))")
    )
    others = await connection.scalar(
        select(func.count())
        .select_from(users)
        .where(users.c.role == Role.OWNER, users.c.state == UserState.ACTIVE, users.c.id != user.id)
    )
    if not others:
        raise LastOwner(user.id)


# May run: administrator.
async def write_user(
    connection: AsyncConnection, user: UserRecord, values: Mapping[str, object], now: datetime
) -> UserRecord:
    """Write the next version of a locked user."""
    changed = await connection.execute(
        update(users)
        .where(users.c.id == user.id)
        .values(version=user.version + 1, updated_at=now, **values)
        .returning(users)
    )
    return user_of_table(changed.mappings().one())
