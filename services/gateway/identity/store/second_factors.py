"""Authenticator apps, recovery codes, passkeys and unfinished sign-ins in PostgreSQL."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.identity.domain import PasskeyRecord
from gateway.identity.errors import PasskeyNotAdded, TotpEnabled, TotpUnavailable
from gateway.identity.store.revocation import end_sessions, erase_second_factors
from gateway.identity.store.schema import (
    passkeys,
    recovery_codes,
    totp_secrets,
    unfinished_sign_ins,
)
from gateway.identity.store.users import locked_user
from parley.audit_log import AuditAction, AuditEvent
from parley.identity import UserId
from parley.postgres import Database
from parley.process.stored_keys import SealedColumn
from parley.secrets import Sealed, SecretBox

TABLE: Final = "identity.totp_secrets"
COLUMN: Final = "secret"
SEALED_TOTP_SECRETS: Final = SealedColumn(TABLE, COLUMN, "secret_key_id")
PASSKEYS_MAX: Final = 20


class UnfinishedPurpose(StrEnum):
    """What the second request of a sign-in does."""

    SECOND_FACTOR = "second_factor"
    PASSKEY_SIGN_IN = "passkey_sign_in"
    NEW_PASSKEY = "new_passkey"
    OIDC = "oidc"
    OIDC_LINK = "oidc_link"


@dataclass(frozen=True, slots=True)
class StoredTotp:
    """An authenticator app."""

    id: str
    secret: bytes = field(repr=False)
    confirmed_at: datetime | None


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A sign-in that is not finished."""

    user_id: UserId | None
    content: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class StoredPasskey:
    """A passkey with its public key."""

    record: PasskeyRecord
    credential_id: bytes
    public_key: bytes
    sign_count: int


class SecondFactorStore:
    """The part of the schema `identity` for second factors.

    Args:
        database: The database.
        box: Encrypts the secrets of authenticator apps; None if there is no master key.
        audit_log: Records changes.
    """

    def __init__(
        self, database: Database, box: SecretBox | None, audit_log: AuditLog = UNSEALED
    ) -> None:
        self._database = database
        self._box = box
        self._audit_log = audit_log

    # May run: user.
    async def begin_totp(self, user_id: str, totp_id: str, secret: bytes, now: datetime) -> None:
        """Store the secret of an app that is not confirmed yet, in place of such a one.

        Raises:
            TotpEnabled: The user has a confirmed one.
            TotpUnavailable: There is no master key.
        """
        if self._box is None:
            raise TotpUnavailable
        sealed = self._box.seal(secret, table=TABLE, column=COLUMN, row_id=totp_id)
        async with self._database.transaction() as connection:
            await locked_user(connection, user_id)
            await connection.execute(
                delete(totp_secrets).where(
                    totp_secrets.c.user_id == user_id, totp_secrets.c.confirmed_at.is_(None)
                )
            )
            added = await connection.execute(
                insert(totp_secrets)
                .values(
                    id=totp_id,
                    user_id=user_id,
                    secret=sealed.ciphertext,
                    secret_key_id=sealed.key_id,
                    last_step=0,
                    created_at=now,
                )
                .on_conflict_do_nothing(index_elements=[totp_secrets.c.user_id])
                .returning(totp_secrets.c.id)
            )
            if added.first() is None:
                raise TotpEnabled

    # May run: user, credential.
    async def find_totp(self, user_id: str) -> StoredTotp | None:
        """Return the app of a user, confirmed or not.

        Raises:
            TotpUnavailable: There is no master key.
        """
        found = select(totp_secrets).where(totp_secrets.c.user_id == user_id)
        async with self._database.reading() as connection:
            row = (await connection.execute(found)).mappings().first()
        if row is None:
            return None
        if self._box is None:
            raise TotpUnavailable
        totp_id = str(row["id"])
        sealed = Sealed(row["secret"], row["secret_key_id"])
        secret = self._box.open(sealed, table=TABLE, column=COLUMN, row_id=totp_id)
        return StoredTotp(totp_id, secret, row["confirmed_at"])

    # May run: credential.
    async def has_totp(self, user_id: str) -> bool:
        """Return whether a user has a confirmed app."""
        found = select(totp_secrets.c.id).where(
            totp_secrets.c.user_id == user_id, totp_secrets.c.confirmed_at.is_not(None)
        )
        async with self._database.reading() as connection:
            return (await connection.execute(found)).first() is not None

    # May run: user, credential.
    async def accept_step(self, totp_id: str, step: int) -> bool:
        """Record the step of a code; return False if it or a later one was used before."""
        used = (
            update(totp_secrets)
            .where(totp_secrets.c.id == totp_id, totp_secrets.c.last_step < step)
            .values(last_step=step)
            .returning(totp_secrets.c.id)
        )
        async with self._database.transaction() as connection:
            return (await connection.execute(used)).first() is not None

    # May run: user.
    async def confirm_totp(
        self, user_id: str, totp_id: str, digests: Sequence[bytes], now: datetime
    ) -> None:
        """Let an app count, with new recovery codes."""
        async with self._database.transaction() as connection:
            await connection.execute(
                update(totp_secrets).where(totp_secrets.c.id == totp_id).values(confirmed_at=now)
            )
            await _replace_codes(connection, user_id, digests)
            await self._append(connection, AuditAction.TOTP_ENABLED, totp_id, user_id)

    # May run: user, credential.
    async def spend_code(self, user_id: str, digest: bytes, now: datetime) -> bool:
        """Spend a recovery code; return False if there is none that was not used."""
        spent = (
            update(recovery_codes)
            .where(
                recovery_codes.c.user_id == user_id,
                recovery_codes.c.digest == digest,
                recovery_codes.c.used_at.is_(None),
            )
            .values(used_at=now)
            .returning(recovery_codes.c.digest)
        )
        async with self._database.transaction() as connection:
            if (await connection.execute(spent)).first() is None:
                return False
            used = AuditEvent(AuditAction.RECOVERY_CODE_USED, user_id, actor_user_id=user_id)
            await self._audit_log.append(connection, used)
            return True

    async def replace_codes(self, user_id: str, digests: Sequence[bytes]) -> None:
        """Store recovery codes in place of all others."""
        async with self._database.transaction() as connection:
            await _replace_codes(connection, user_id, digests)
            await self._append(connection, AuditAction.RECOVERY_CODES_REPLACED, user_id, user_id)

    # May run: user.
    async def count_codes(self, user_id: str) -> int:
        """Return how many recovery codes were not used."""
        left = (
            select(func.count())
            .select_from(recovery_codes)
            .where(recovery_codes.c.user_id == user_id, recovery_codes.c.used_at.is_(None))
        )
        async with self._database.reading() as connection:
            return await connection.scalar(left) or 0

    # May run: user.
    async def remove_totp(self, user_id: str) -> None:
        """Remove the app and the recovery codes of a user."""
        async with self._database.transaction() as connection:
            for table in (totp_secrets, recovery_codes):
                await connection.execute(delete(table).where(table.c.user_id == user_id))
            await self._append(connection, AuditAction.TOTP_REMOVED, user_id, user_id)

    async def reset(self, user_id: str) -> None:
        """Remove all second factors and passkeys of a user, and end their sessions."""
        async with self._database.transaction() as connection:
            await locked_user(connection, user_id)
            await erase_second_factors(connection, user_id)
            await end_sessions(connection, user_id)
            await self._append(connection, AuditAction.SECOND_FACTORS_RESET, user_id, user_id)

    async def _append(
        self, connection: AsyncConnection, action: AuditAction, object_id: str, user_id: str
    ) -> None:
        await self._audit_log.append(connection, AuditEvent(action, object_id, user_id))

    # May run: credential.
    async def begin(
        self,
        digest: bytes,
        purpose: UnfinishedPurpose,
        unfinished: Unfinished,
        *,
        now: datetime,
        expires_at: datetime,
    ) -> None:
        """Store a sign-in that is not finished, and drop those that are over."""
        async with self._database.transaction() as connection:
            await connection.execute(
                delete(unfinished_sign_ins).where(unfinished_sign_ins.c.expires_at < now)
            )
            await connection.execute(
                insert(unfinished_sign_ins).values(
                    digest=digest,
                    purpose=purpose,
                    user_id=unfinished.user_id,
                    content=unfinished.content,
                    expires_at=expires_at,
                )
            )

    # May run: credential.
    async def find(
        self, digest: bytes, purpose: UnfinishedPurpose, now: datetime
    ) -> Unfinished | None:
        """Return a sign-in that is not finished."""
        found = select(unfinished_sign_ins).where(
            unfinished_sign_ins.c.digest == digest,
            unfinished_sign_ins.c.purpose == purpose,
            unfinished_sign_ins.c.expires_at > now,
        )
        async with self._database.reading() as connection:
            return _unfinished((await connection.execute(found)).mappings().first())

    # May run: credential.
    async def take(
        self, digest: bytes, purpose: UnfinishedPurpose, now: datetime
    ) -> Unfinished | None:
        """Return a sign-in that is not finished, once."""
        taken = (
            delete(unfinished_sign_ins)
            .where(
                unfinished_sign_ins.c.digest == digest,
                unfinished_sign_ins.c.purpose == purpose,
                unfinished_sign_ins.c.expires_at > now,
            )
            .returning(unfinished_sign_ins)
        )
        async with self._database.transaction() as connection:
            return _unfinished((await connection.execute(taken)).mappings().first())

    # May run: user.
    async def add_passkey(self, passkey: StoredPasskey) -> None:
        """Store a passkey.

        Raises:
            PasskeyNotAdded: It is known already, or the user has as many as they may.
        """
        record = passkey.record
        async with self._database.transaction() as connection:
            await locked_user(connection, record.user_id)
            count = select(func.count()).select_from(passkeys)
            own = count.where(passkeys.c.user_id == record.user_id)
            if (await connection.scalar(own) or 0) >= PASSKEYS_MAX:
                raise PasskeyNotAdded(PASSKEYS_MAX)
            added = await connection.execute(
                insert(passkeys)
                .values(
                    id=record.id,
                    user_id=record.user_id,
                    credential_id=passkey.credential_id,
                    public_key=passkey.public_key,
                    sign_count=passkey.sign_count,
                    name=record.name,
                    created_at=record.created_at,
                )
                .on_conflict_do_nothing(index_elements=[passkeys.c.credential_id])
                .returning(passkeys.c.id)
            )
            if added.first() is None:
                raise PasskeyNotAdded(PASSKEYS_MAX)
            await self._append(connection, AuditAction.PASSKEY_ADDED, record.id, record.user_id)

    # May run: user.
    async def list_passkeys(self, user_id: str) -> Sequence[StoredPasskey]:
        """Return the passkeys of a user, oldest first."""
        found = select(passkeys).where(passkeys.c.user_id == user_id).order_by(passkeys.c.id)
        async with self._database.reading() as connection:
            rows = await connection.execute(found)
            return tuple(_passkey(row) for row in rows.mappings())

    # May run: credential.
    async def find_passkey(self, credential_id: bytes) -> StoredPasskey | None:
        """Return the passkey with this credential id."""
        found = select(passkeys).where(passkeys.c.credential_id == credential_id)
        async with self._database.reading() as connection:
            row = (await connection.execute(found)).mappings().first()
        return None if row is None else _passkey(row)

    # May run: credential.
    async def touch_passkey(self, passkey_id: str, sign_count: int, now: datetime) -> None:
        """Record that a passkey was used."""
        async with self._database.transaction() as connection:
            await connection.execute(
                update(passkeys)
                .where(passkeys.c.id == passkey_id)
                .values(sign_count=sign_count, last_used_at=now)
            )

    # May run: user.
    async def remove_passkey(self, user_id: str, passkey_id: str) -> bool:
        """Remove a passkey of a user; return whether there was one."""
        removed = (
            delete(passkeys)
            .where(passkeys.c.user_id == user_id, passkeys.c.id == passkey_id)
            .returning(passkeys.c.id)
        )
        async with self._database.transaction() as connection:
            is_removed = (await connection.execute(removed)).first() is not None
            if is_removed:
                await self._append(connection, AuditAction.PASSKEY_REMOVED, passkey_id, user_id)
            return is_removed


# May run: user.
async def _replace_codes(
    connection: AsyncConnection, user_id: str, digests: Sequence[bytes]
) -> None:
    await connection.execute(delete(recovery_codes).where(recovery_codes.c.user_id == user_id))
    rows = [{"user_id": user_id, "digest": digest} for digest in digests]
    await connection.execute(insert(recovery_codes), rows)


def _unfinished(row: Any) -> Unfinished | None:
    if row is None:
        return None
    user_id = row["user_id"]
    return Unfinished(None if user_id is None else UserId(str(user_id)), row["content"])


def _passkey(row: Any) -> StoredPasskey:
    record = PasskeyRecord(
        id=str(row["id"]),
        user_id=UserId(str(row["user_id"])),
        name=row["name"],
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
    )
    return StoredPasskey(record, row["credential_id"], row["public_key"], row["sign_count"])
