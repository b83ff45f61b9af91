"""Identity providers that administrators configured, in PostgreSQL."""

from datetime import datetime
from typing import Any, Final

import msgspec
from sqlalchemy import delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.identity.domain import OidcIssuer, StoredIssuer
from gateway.identity.errors import IssuerSecretsUnavailable, TooManyIssuers, VersionConflict
from gateway.identity.store.schema import oidc_issuers
from gateway.identity.store.second_factors import SEALED_TOTP_SECRETS
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.event import DETAIL_CHARACTERS_MAX
from parley.postgres import Database
from parley.process.stored_keys import SealedColumn, StoredKeys
from parley.secrets import Sealed, SecretBox

TABLE: Final = "identity.oidc_issuers"
COLUMN: Final = "client_secret"
#: Everything of this schema that is encrypted with the master key.
STORED_KEYS: Final = StoredKeys(
    "identity.keys", (SEALED_TOTP_SECRETS, SealedColumn(TABLE, COLUMN, "client_secret_key_id"))
)
STORED_MAX: Final = 32
#: Held while issuers are counted and added.
COUNT_LOCK: Final = 7_319_001


class IssuerStore:
    """The part of the schema `identity` for identity providers.

    Args:
        database: The database.
        box: Encrypts the secrets of clients; None if there is no master key.
        audit_log: Records changes.
    """

    def __init__(
        self, database: Database, box: SecretBox | None, audit_log: AuditLog = UNSEALED
    ) -> None:
        self._database = database
        self._box = box
        self._audit_log = audit_log

    async def all(self) -> tuple[OidcIssuer, ...]:
        """Return all of them, without their secrets."""
        return tuple(each.issuer for each in await self.stored())

    # May run: administrator, credential, user.
    async def stored(self) -> tuple[StoredIssuer, ...]:
        """Return all of them with their versions, ordered by name."""
        async with self._database.reading() as connection:
            rows = await connection.execute(select(oidc_issuers).order_by(oidc_issuers.c.name))
            return tuple(
                StoredIssuer(_issuer(row, ""), row["version"], row["client_secret"] is not None)
                for row in rows.mappings()
            )

    async def find(self, name: str) -> OidcIssuer | None:
        """Return one of them, with its secret."""
        async with self._database.reading() as connection:
            row = await _row(connection, name)
        return None if row is None else _issuer(row, self._opened(row))

    # May run: administrator.
    async def put(
        self, issuer: OidcIssuer, *, new_id: str, expected_version: int, now: datetime
    ) -> StoredIssuer:
        """Create an issuer, or replace the one of its name.

        Raises:
            VersionConflict: It changed since it was read.
            TooManyIssuers: There are as many as there may be.
            IssuerSecretsUnavailable: It has a secret, and there is no master key.
        """
        async with self._database.transaction() as connection:
            await connection.execute(select(func.pg_advisory_xact_lock(COUNT_LOCK)))
            row = await _row(connection, issuer.name)
            version = 0 if row is None else row["version"]
            if expected_version not in (0, version):
                raise VersionConflict(version)
            row_id = new_id if row is None else str(row["id"])
            if row is None:
                counted = select(func.count()).select_from(oidc_issuers)
                if (await connection.scalar(counted) or 0) >= STORED_MAX:
                    raise TooManyIssuers(STORED_MAX)
            values = {
                "configuration": _configuration(issuer),
                **self._sealed(issuer.client_secret, row_id),
                "version": version + 1,
                "updated_at": now,
            }
            if row is None:
                made = insert(oidc_issuers).values(
                    id=row_id, name=issuer.name, created_at=now, **values
                )
                await connection.execute(made)
            else:
                changed = update(oidc_issuers).where(oidc_issuers.c.id == row_id).values(**values)
                await connection.execute(changed)
            await self._audit_log.append(connection, _put_event(issuer, row_id))
        return StoredIssuer(issuer, version + 1, issuer.client_secret != "")

    # May run: administrator.
    async def delete(self, name: str) -> bool:
        """Delete an issuer; return whether there was one."""
        gone = delete(oidc_issuers).where(oidc_issuers.c.name == name).returning(oidc_issuers.c.id)
        async with self._database.transaction() as connection:
            row_id = (await connection.execute(gone)).scalar()
            if row_id is not None:
                details = {"name": name}
                event = AuditEvent(AuditAction.OIDC_ISSUER_DELETED, str(row_id), details=details)
                await self._audit_log.append(connection, event)
        return row_id is not None

    def _sealed(self, secret: str, row_id: str) -> dict[str, Any]:
        if not secret:
            return {"client_secret": None, "client_secret_key_id": None}
        if self._box is None:
            raise IssuerSecretsUnavailable
        sealed = self._box.seal(secret.encode(), table=TABLE, column=COLUMN, row_id=row_id)
        return {"client_secret": sealed.ciphertext, "client_secret_key_id": sealed.key_id}

    def _opened(self, row: Any) -> str:
        if row["client_secret"] is None:
            return ""
        if self._box is None:
            raise IssuerSecretsUnavailable
        sealed = Sealed(row["client_secret"], row["client_secret_key_id"])
        opened = self._box.open(sealed, table=TABLE, column=COLUMN, row_id=str(row["id"]))
        return opened.decode()


# May run: administrator, credential, user.
async def _row(connection: AsyncConnection, name: str) -> Any:
    found = select(oidc_issuers).where(oidc_issuers.c.name == name)
    return (await connection.execute(found)).mappings().first()


def _issuer(row: Any, secret: str) -> OidcIssuer:
    fields = {**row["configuration"], "name": row["name"], "client_secret": secret}
    return msgspec.convert(fields, OidcIssuer)


def _configuration(issuer: OidcIssuer) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(issuer)
    return {name: each for name, each in fields.items() if name not in ("name", "client_secret")}


def _put_event(issuer: OidcIssuer, row_id: str) -> AuditEvent:
    return AuditEvent(
        AuditAction.OIDC_ISSUER_PUT,
        row_id,
        details={
            "name": issuer.name,
            "issuer": issuer.issuer[:DETAIL_CHARACTERS_MAX],
            "creates_users": str(issuer.creates_users).lower(),
            "links_by_email": str(issuer.links_by_email).lower(),
            "role": issuer.role,
        },
    )
