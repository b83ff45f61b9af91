"""Users of identity providers in PostgreSQL."""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.constraints import Constraint
from gateway.identity.domain import UserRecord
from gateway.identity.errors import LoginTaken
from gateway.identity.store.credentials import user_of_table
from gateway.identity.store.schema import linked_identities, users
from gateway.identity.store.users import user_created
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.event import DETAIL_CHARACTERS_MAX
from parley.postgres import Database


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
        self, user: UserRecord, *, issuer: str, subject: str, now: datetime
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
                        issuer=issuer, subject=subject, user_id=user.id, linked_at=now
                    )
                )
                await self._audit_log.append(connection, user_created(user))
                linked = AuditEvent(
                    AuditAction.USER_IDENTITY_LINKED,
                    user.id,
                    user.id,
                    details={"issuer": issuer[:DETAIL_CHARACTERS_MAX]},
                )
                await self._audit_log.append(connection, linked)
        except IntegrityError as error:
            if Constraint.LINKED_IDENTITIES_PKEY in str(error.orig):
                return None
            if Constraint.USERS_LOGIN_UNIQUE not in str(error.orig):
                raise
            raise LoginTaken(user.login) from error
        return user
