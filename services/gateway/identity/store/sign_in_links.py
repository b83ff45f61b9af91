"""One-time links in PostgreSQL; each change is one transaction."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.identity.domain import LinkPurpose, LinkRecord, UserRecord, UserState
from gateway.identity.errors import (
    LinkInvalid,
    LinkNotFound,
    LinkState,
    SecretAlreadyShown,
    UserDeactivated,
)
from gateway.identity.store.credentials import user_of_table
from gateway.identity.store.revocation import revoke_links
from gateway.identity.store.schema import sessions, sign_in_links, users
from gateway.identity.store.sessions import (
    NewSession,
    add_session,
    session_created,
    set_password,
)
from gateway.identity.store.users import locked_user
from parley.audit_log import AuditAction, AuditEvent
from parley.identity import UserId
from parley.postgres import Database

LISTED_MAX: Final = 200
KEPT: Final = timedelta(days=90)


class LinkStore:
    """The part of the schema `identity` for one-time links."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    # May run: administrator.
    async def add(self, record: LinkRecord, *, digest: bytes, request_id: str) -> None:
        """Store a link in place of unused older ones of its user.

        Raises:
            UserNotFound: There is no such user.
            UserDeactivated: They are deactivated.
            SecretAlreadyShown: The request was made before.
        """
        now = record.created_at
        async with self._database.transaction() as connection:
            user = await locked_user(connection, record.user_id)
            if not user.is_active:
                raise UserDeactivated(record.user_id)
            added = await connection.execute(
                insert(sign_in_links)
                .values(
                    id=record.id,
                    user_id=record.user_id,
                    digest=digest,
                    purpose=record.purpose,
                    created_by_user_id=record.created_by_user_id,
                    request_id=request_id,
                    created_at=now,
                    expires_at=record.expires_at,
                )
                .on_conflict_do_nothing(
                    index_elements=[
                        sign_in_links.c.created_by_user_id,
                        sign_in_links.c.request_id,
                    ]
                )
                .returning(sign_in_links.c.id)
            )
            if added.first() is None:
                made = select(sign_in_links.c.id).where(
                    sign_in_links.c.created_by_user_id == record.created_by_user_id,
                    sign_in_links.c.request_id == request_id,
                )
                raise SecretAlreadyShown(str(await connection.scalar(made)))
            await revoke_links(connection, record.user_id, now, but=record.id)
            await connection.execute(
                delete(sign_in_links).where(sign_in_links.c.expires_at < now - KEPT)
            )
            details = {"purpose": record.purpose.value, "expires_at": record.expires_at.isoformat()}
            await self._audit_log.append(
                connection,
                AuditEvent(
                    AuditAction.SIGN_IN_LINK_CREATED, record.id, record.user_id, details=details
                ),
            )

    # May run: administrator.
    async def list(self, user_id: str) -> Sequence[LinkRecord]:
        """Return the links of a user, newest first."""
        found = (
            select(sign_in_links)
            .where(sign_in_links.c.user_id == user_id)
            .order_by(sign_in_links.c.id.desc())
            .limit(LISTED_MAX)
        )
        async with self._database.reading() as connection:
            rows = await connection.execute(found)
            return tuple(_link(row) for row in rows.mappings())

    # May run: administrator.
    async def revoke(self, user_id: str, link_id: str, now: datetime) -> None:
        """Take a link back; one that was used or taken back stays so.

        Raises:
            LinkNotFound: The user has no such link.
        """
        is_named = (sign_in_links.c.user_id == user_id) & (sign_in_links.c.id == link_id)
        async with self._database.transaction() as connection:
            if await connection.scalar(select(sign_in_links.c.id).where(is_named)) is None:
                raise LinkNotFound(link_id)
            revoked = await connection.execute(
                update(sign_in_links)
                .where(
                    is_named,
                    sign_in_links.c.used_at.is_(None),
                    sign_in_links.c.revoked_at.is_(None),
                )
                .values(revoked_at=now)
                .returning(sign_in_links.c.id)
            )
            if revoked.first() is not None:
                await self._audit_log.append(
                    connection, AuditEvent(AuditAction.SIGN_IN_LINK_REVOKED, link_id, user_id)
                )

    async def offered(self, digest: bytes, now: datetime) -> tuple[LinkRecord, UserRecord]:
        """Return the link whose token has this digest, and its user.

        Raises:
            LinkInvalid: It does not work.
        """
        async with self._database.transaction() as connection:
            return await _usable(connection, digest, now)

    # May run: credential.
    async def use(
        self, digest: bytes, new_hash: str, session: NewSession | None, now: datetime
    ) -> None:
        """Spend a link: set its user's password, and let one new session take the place of all.

        Args:
            digest: The digest of its token.
            new_hash: The hash of the password.
            session: The session; None if the second factor is missing.
            now: The time.

        Raises:
            LinkInvalid: It does not work.
        """
        async with self._database.transaction() as connection:
            link, user = await _usable(connection, digest, now, is_locked=True)
            await connection.execute(
                update(sign_in_links).where(sign_in_links.c.id == link.id).values(used_at=now)
            )
            await set_password(connection, user.id, new_hash, now)
            await connection.execute(delete(sessions).where(sessions.c.user_id == user.id))
            if session is not None:
                await add_session(connection, session)
            await self._audit_log.append(
                connection,
                AuditEvent(
                    AuditAction.SIGN_IN_LINK_USED,
                    link.id,
                    actor_user_id=user.id,
                    details={"purpose": link.purpose.value},
                ),
            )
            if session is not None:
                await self._audit_log.append(connection, session_created(session))


# May run: credential.
async def _usable(
    connection: AsyncConnection, digest: bytes, now: datetime, *, is_locked: bool = False
) -> tuple[LinkRecord, UserRecord]:
    found = select(sign_in_links).where(sign_in_links.c.digest == digest)
    user_id = await connection.scalar(found.with_only_columns(sign_in_links.c.user_id))
    if user_id is None:
        raise LinkInvalid(LinkState.UNKNOWN)
    of_link = select(users).where(users.c.id == user_id)
    if is_locked:
        # The user before the link, as where users are changed, so that neither waits for the other.
        found, of_link = found.with_for_update(), of_link.with_for_update(read=True)
    user = user_of_table((await connection.execute(of_link)).mappings().one())
    link = _link((await connection.execute(found)).mappings().one())
    if link.used_at is not None:
        raise LinkInvalid(LinkState.SPENT)
    if link.revoked_at is not None or user.state is not UserState.ACTIVE:
        raise LinkInvalid(LinkState.REVOKED)
    if link.expires_at <= now:
        raise LinkInvalid(LinkState.EXPIRED)
    return link, user


def _link(row: Any) -> LinkRecord:
    return LinkRecord(
        id=str(row["id"]),
        user_id=UserId(str(row["user_id"])),
        purpose=LinkPurpose(row["purpose"]),
        created_by_user_id=UserId(str(row["created_by_user_id"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        used_at=row["used_at"],
        revoked_at=row["revoked_at"],
    )
