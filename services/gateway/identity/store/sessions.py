"""Sessions and passwords in PostgreSQL; each change is one transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.identity.domain import SessionRecord, SignInMethod, UserRecord, UserState
from gateway.identity.errors import SignInRefused
from gateway.identity.store.credentials import user_of_table
from gateway.identity.store.schema import (
    known_devices,
    passwords,
    sessions,
    used_login_tokens,
    users,
)
from parley.audit_log import AuditAction, AuditEvent, AuditOutcome
from parley.identity import UserId
from parley.postgres import Database

SESSIONS_MAX: Final = 200
DEVICE_LIFETIME: Final = timedelta(days=365)


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to store.

    Attributes:
        record: What is shown of it.
        digest: The digest of its token.
        device_digest: The digest of the token of its browser.
        replaced_digest: The digest of the token that the browser had before; None for none.
    """

    record: SessionRecord
    digest: bytes
    device_digest: bytes
    replaced_digest: bytes | None


@dataclass(frozen=True, slots=True)
class PasswordOwner:
    """A user and the hash of their password, if they have one.

    Attributes:
        user: The user.
        hash: The hash.
        is_known_device: Whether they signed in with the given browser before.
    """

    user: UserRecord
    hash: str | None
    is_known_device: bool


class SessionStore:
    """The part of the schema `identity` for sessions and passwords."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    # May run: credential.
    async def find_by_login(self, login: str, device_digest: bytes | None) -> PasswordOwner | None:
        """Return the user with this login."""
        known = (
            select(known_devices.c.digest)
            .where(known_devices.c.user_id == users.c.id, known_devices.c.digest == device_digest)
            .exists()
        )
        found = (
            select(users, passwords.c.hash, known.label("is_known_device"))
            .outerjoin(passwords, passwords.c.user_id == users.c.id)
            .where(users.c.login == login)
        )
        async with self._database.reading() as connection:
            row = (await connection.execute(found)).mappings().first()
        if row is None:
            return None
        return PasswordOwner(user_of_table(row), row["hash"], row["is_known_device"])

    # May run: credential.
    async def is_known_device(self, user_id: str, device_digest: bytes) -> bool:
        """Return whether a user signed in with this browser before."""
        known = select(known_devices.c.digest).where(
            known_devices.c.user_id == user_id, known_devices.c.digest == device_digest
        )
        async with self._database.reading() as connection:
            return await connection.scalar(known) is not None

    # May run: user.
    async def find_hash(self, user_id: str) -> str | None:
        """Return the hash of a user's password; None if they have none."""
        found = select(passwords.c.hash).where(passwords.c.user_id == user_id)
        async with self._database.reading() as connection:
            stored: str | None = (await connection.execute(found)).scalar()
        return stored

    # May run: credential.
    async def open(
        self,
        session: NewSession,
        *,
        verified_hash: str | None = None,
        login_digest: bytes | None = None,
    ) -> None:
        """Store a session in place of the one that the browser had.

        Args:
            session: The session.
            verified_hash: The hash that the password was verified with; None without a password.
            login_digest: The digest of the login token that is consumed; None without one.

        Raises:
            SignInRefused: The user was deactivated or changed the password meanwhile, or the login
                token was used before.
        """
        user_id = session.record.user_id
        async with self._database.transaction() as connection:
            if login_digest is not None:
                spent = await connection.execute(
                    insert(used_login_tokens)
                    .values(digest=login_digest, used_at=session.record.created_at)
                    .on_conflict_do_nothing()
                    .returning(used_login_tokens.c.digest)
                )
                if spent.first() is None:
                    raise SignInRefused
            is_active = select(users.c.id).where(
                users.c.id == user_id, users.c.state == UserState.ACTIVE
            )
            # A change of the user waits for this transaction, and ends the session afterwards.
            if (await connection.execute(is_active.with_for_update(read=True))).first() is None:
                raise SignInRefused
            if verified_hash is not None:
                same = select(passwords.c.hash).where(passwords.c.user_id == user_id)
                stored = await connection.scalar(same.with_for_update(read=True))
                if stored != verified_hash:
                    raise SignInRefused
            await add_session(connection, session)
            await self._audit_log.append(connection, session_created(session))

    async def record_refusal(
        self, method: SignInMethod, reason: str, user_id: str | None = None
    ) -> None:
        """Record a sign-in that was refused; what was typed in is not recorded.

        Args:
            method: How it was tried.
            reason: Why it was refused.
            user_id: The user; None if it is not known who it was.
        """
        refusal = AuditEvent(
            AuditAction.SESSION_REFUSED,
            subject_user_id=user_id,
            details={"method": method.value, "reason": reason},
            outcome=AuditOutcome.REFUSED,
        )
        async with self._database.transaction() as connection:
            await self._audit_log.append(connection, refusal)

    # May run: credential.
    async def renew_hash(self, user_id: str, old: str, new: str) -> None:
        """Replace a hash by one of the same password."""
        async with self._database.transaction() as connection:
            await connection.execute(
                update(passwords)
                .where(passwords.c.user_id == user_id, passwords.c.hash == old)
                .values(hash=new)
            )

    # May run: user.
    async def change_password(
        self, user_id: str, new_hash: str, *, old_hash: str | None, kept_session: str, now: datetime
    ) -> None:
        """Set a password, and end all sessions but one.

        Raises:
            SignInRefused: The password changed meanwhile.
        """
        async with self._database.transaction() as connection:
            await connection.execute(
                select(users.c.id).where(users.c.id == user_id).with_for_update()
            )
            found = select(passwords.c.hash).where(passwords.c.user_id == user_id)
            if await connection.scalar(found) != old_hash:
                raise SignInRefused
            await set_password(connection, user_id, new_hash, now)
            ended = delete(sessions).where(sessions.c.user_id == user_id)
            if kept_session:
                ended = ended.where(sessions.c.id != kept_session)
            await connection.execute(ended)
            is_first = {"is_first": "true" if old_hash is None else "false"}
            await self._audit_log.append(
                connection,
                AuditEvent(AuditAction.PASSWORD_CHANGED, user_id, user_id, details=is_first),
            )

    # May run: user.
    async def list(
        self, user_id: str, *, now: datetime, idle: timedelta
    ) -> Sequence[SessionRecord]:
        """Return a user's sessions that have not ended, the last used first."""
        found = (
            select(sessions)
            .where(
                sessions.c.user_id == user_id,
                sessions.c.expires_at > now,
                sessions.c.last_seen_at > now - idle,
            )
            .order_by(sessions.c.last_seen_at.desc(), sessions.c.created_at.desc())
            .limit(SESSIONS_MAX)
        )
        async with self._database.reading() as connection:
            rows = await connection.execute(found)
            return tuple(_session(row) for row in rows.mappings())

    # May run: user.
    async def end(self, user_id: str, session_id: str | None = None) -> int:
        """End one session of a user, or all of them; return how many."""
        ended = delete(sessions).where(sessions.c.user_id == user_id)
        if session_id is not None:
            ended = ended.where(sessions.c.id == session_id)
        async with self._database.transaction() as connection:
            rows = await connection.execute(ended.returning(sessions.c.id))
            count = len(rows.all())
            if count:
                details = {"sessions": str(count)}
                await self._audit_log.append(
                    connection,
                    AuditEvent(
                        AuditAction.SESSION_ENDED, session_id or "", user_id, details=details
                    ),
                )
            return count


def session_created(session: NewSession) -> AuditEvent:
    """Return the event of a new session."""
    record = session.record
    return AuditEvent(
        AuditAction.SESSION_CREATED,
        record.id,
        actor_user_id=record.user_id,
        details={"method": record.method.value},
    )


# May run: credential.
async def add_session(connection: AsyncConnection, session: NewSession) -> None:
    """Store a session in place of the one that the browser had, and drop those that are over."""
    record = session.record
    is_over = sessions.c.expires_at < record.created_at
    if session.replaced_digest is not None:
        is_over |= sessions.c.digest == session.replaced_digest
    await connection.execute(delete(sessions).where(is_over))
    await connection.execute(
        insert(sessions).values(
            digest=session.digest,
            user_id=record.user_id,
            created_at=record.created_at,
            last_seen_at=record.last_seen_at,
            expires_at=record.expires_at,
            id=record.id,
            method=record.method,
            address=record.address,
            user_agent=record.user_agent,
        )
    )
    kept = (
        select(sessions.c.id)
        .where(sessions.c.user_id == record.user_id)
        .order_by(sessions.c.last_seen_at.desc(), sessions.c.id.desc())
        .limit(SESSIONS_MAX)
    )
    await connection.execute(
        delete(sessions).where(sessions.c.user_id == record.user_id, sessions.c.id.not_in(kept))
    )
    await _remember_device(connection, record.user_id, session.device_digest, record.created_at)


# May run: credential.
async def set_password(
    connection: AsyncConnection, user_id: str, new_hash: str, now: datetime
) -> None:
    """Store the hash of a user's password."""
    values = {"hash": new_hash, "changed_at": now}
    await connection.execute(
        insert(passwords)
        .values(user_id=user_id, **values)
        .on_conflict_do_update(index_elements=[passwords.c.user_id], set_=values)
    )


# May run: credential.
async def _remember_device(
    connection: AsyncConnection, user_id: str, digest: bytes, now: datetime
) -> None:
    known = insert(known_devices).values(
        digest=digest, user_id=user_id, created_at=now, last_used_at=now
    )
    values = {"last_used_at": func.greatest(known_devices.c.last_used_at, now)}
    await connection.execute(
        known.on_conflict_do_update(index_elements=[known_devices.c.digest], set_=values)
    )
    await connection.execute(
        delete(known_devices).where(known_devices.c.last_used_at < now - DEVICE_LIFETIME)
    )


def _session(row: Any) -> SessionRecord:
    return SessionRecord(
        id=str(row["id"]),
        user_id=UserId(str(row["user_id"])),
        method=SignInMethod(row["method"]),
        address=row["address"],
        user_agent=row["user_agent"],
        created_at=row["created_at"],
        last_seen_at=row["last_seen_at"],
        expires_at=row["expires_at"],
    )
