"""Users of identity providers in PostgreSQL."""

from datetime import datetime
from typing import Final

from sqlalchemy import delete, exists, func, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.constraints import Constraint
from gateway.identity.domain import LinkedIdentity, UserKind, UserRecord, UserState
from gateway.identity.errors import IdentityNotLinked, LastWayToSignIn, LoginTaken
from gateway.identity.store.credentials import user_of_table
from gateway.identity.store.schema import linked_identities, passkeys, passwords, users
from gateway.identity.store.users import locked_user, user_created
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.event import DETAIL_CHARACTERS_MAX
from parley.identity import Role
from parley.postgres import Database

IDENTITIES_MAX: Final = 20

_LINKED: Final = AuditAction.USER_IDENTITY_LINKED
_UNLINKED: Final = AuditAction.USER_IDENTITY_UNLINKED


class LinkedIdentityStore:
    """The part of the schema `identity` for users of identity providers."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    # May run: credential.
    async def find(self, issuer: str, subject: str) -> UserRecord | None:
        """Return the user whom a user of an issuer is here."""
        found = (
            select(users)
            .join(linked_identities, linked_identities.c.user_id == users.c.id)
            .where(linked_identities.c.issuer == issuer, linked_identities.c.subject == subject)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(found)).mappings().first()
        return None if row is None else user_of_table(row)

    # May run: credential.
    async def create(
        self, user: UserRecord, *, issuer: str, subject: str, new_id: str, now: datetime
    ) -> UserRecord | None:
        """Store a new user of an issuer; None if another request did so meanwhile.

        Raises:
            LoginTaken: Another user has the login.
        """
        try:
            async with self._database.transaction() as connection:
                await connection.execute(
                    insert(users).values(
                        id=user.id,
                        login=user.login,
                        display_name=user.display_name,
                        email=user.email,
                        role=user.role,
                        state=user.state,
                        version=user.version,
                        created_at=now,
                        updated_at=now,
                        kind=user.kind,
                    )
                )
                await connection.execute(
                    insert(linked_identities).values(
                        issuer=issuer, subject=subject, user_id=user.id, linked_at=now, id=new_id
                    )
                )
                await self._audit_log.append(connection, user_created(user))
                await self._audit_log.append(connection, _event(_LINKED, user.id, issuer))
        except IntegrityError as error:
            if Constraint.LINKED_IDENTITIES_PKEY in str(error.orig):
                return None
            if Constraint.USERS_LOGIN_UNIQUE not in str(error.orig):
                raise
            raise LoginTaken(user.login) from error
        return user

    # May run: user.
    async def of_user(self, user_id: str) -> tuple[LinkedIdentity, ...]:
        """Return the identities of a user, oldest first."""
        found = (
            select(linked_identities)
            .where(linked_identities.c.user_id == user_id)
            .order_by(linked_identities.c.linked_at, linked_identities.c.id)
        )
        async with self._database.reading() as connection:
            rows = (await connection.execute(found)).mappings()
            return tuple(
                LinkedIdentity(str(row["id"]), row["issuer"], row["subject"], row["linked_at"])
                for row in rows
            )

    async def link(
        self, user_id: str, *, issuer: str, subject: str, new_id: str, now: datetime
    ) -> None:
        """Link an identity to a user; one that is theirs already stays so.

        Raises:
            UserNotFound: The user was deleted meanwhile.
            IdentityNotLinked: It is that of another user, or the user has as many as they may.
        """
        async with self._database.transaction() as connection:
            await locked_user(connection, user_id)
            await self._link(connection, user_id, issuer, subject, new_id, now)

    # May run: credential.
    async def link_by_email(
        self, email: str, *, issuer: str, subject: str, new_id: str, now: datetime
    ) -> UserRecord | None:
        """Link an identity to the one user with an email address who has no way to sign in.

        Users may change their own address, so that it proves nothing about those who can sign in.
        Owners and administrators are never linked so. None if there is no such user.
        """
        found = (
            select(users)
            .where(
                func.lower(users.c.email) == email.lower(),
                users.c.state == UserState.ACTIVE,
                users.c.kind == UserKind.PERSON,
            )
            .limit(2)
            .with_for_update()
        )
        async with self._database.transaction() as connection:
            rows = (await connection.execute(found)).mappings().all()
            if len(rows) != 1:
                return None
            user = user_of_table(rows[0])
            if user.role not in (Role.MEMBER, Role.AUDITOR):
                return None
            if await _can_sign_in(connection, user.id):
                return None
            await self._link(connection, user.id, issuer, subject, new_id, now)
        return user

    # May run: user.
    async def unlink(self, user_id: str, linked_identity_id: str) -> bool:
        """Unlink an identity of a user; return whether there was one.

        Raises:
            LastWayToSignIn: The user could not sign in any more.
        """
        gone = (
            delete(linked_identities)
            .where(
                linked_identities.c.user_id == user_id,
                linked_identities.c.id == linked_identity_id,
            )
            .returning(linked_identities.c.issuer)
        )
        async with self._database.transaction() as connection:
            await locked_user(connection, user_id)
            issuer = (await connection.execute(gone)).scalar()
            if issuer is None:
                return False
            if not await _can_sign_in(connection, user_id):
                raise LastWayToSignIn
            await self._audit_log.append(connection, _event(_UNLINKED, user_id, issuer))
        return True

    # May run: credential.
    async def _link(
        self,
        connection: AsyncConnection,
        user_id: str,
        issuer: str,
        subject: str,
        new_id: str,
        now: datetime,
    ) -> None:
        own = linked_identities.c.user_id == user_id
        counted = select(func.count()).select_from(linked_identities).where(own)
        count = await connection.scalar(counted) or 0
        added = await connection.execute(
            insert(linked_identities)
            .values(issuer=issuer, subject=subject, user_id=user_id, linked_at=now, id=new_id)
            .on_conflict_do_nothing(
                index_elements=[linked_identities.c.issuer, linked_identities.c.subject]
            )
            .returning(linked_identities.c.id)
        )
        if added.first() is None:
            same = select(linked_identities.c.user_id).where(
                linked_identities.c.issuer == issuer, linked_identities.c.subject == subject
            )
            if str(await connection.scalar(same)) != user_id:
                raise IdentityNotLinked(IDENTITIES_MAX)
            return
        if count >= IDENTITIES_MAX:
            raise IdentityNotLinked(IDENTITIES_MAX)
        await self._audit_log.append(connection, _event(_LINKED, user_id, issuer))


# May run: user, credential.
async def _can_sign_in(connection: AsyncConnection, user_id: str) -> bool:
    """Return whether a user has a password, a passkey or a linked identity."""
    ways = [
        exists().where(table.c.user_id == user_id)
        for table in (passwords, passkeys, linked_identities)
    ]
    return bool(await connection.scalar(select(ways[0] | ways[1] | ways[2])))


def _event(action: AuditAction, user_id: str, issuer: str) -> AuditEvent:
    return AuditEvent(
        action,
        user_id,
        user_id,
        actor_user_id=user_id,
        details={"issuer": issuer[:DETAIL_CHARACTERS_MAX]},
    )
