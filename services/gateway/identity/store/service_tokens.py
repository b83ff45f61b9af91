"""Service tokens and the order of their revocations, in PostgreSQL."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.appending import UNSEALED, AuditLog
from gateway.identity.domain import RevokedSet, RevokedToken, ServiceTokenRecord
from gateway.identity.errors import TokenAlreadyIssued, TokenNotFound, TooManyTokens
from gateway.identity.store.schema import revocation_head, service_tokens
from parley.audit_log import AuditAction, AuditEvent
from parley.audit_log.event import DETAIL_CHARACTERS_MAX
from parley.identity import UserId
from parley.postgres import Database

TOKENS_MAX = 20_000


class TokenStore:
    """The part of the schema `identity` for service tokens."""

    def __init__(self, database: Database, audit_log: AuditLog = UNSEALED) -> None:
        self._database = database
        self._audit_log = audit_log

    # May run: administrator.
    async def add(self, record: ServiceTokenRecord, *, request_id: str) -> None:
        """Store the metadata of a new token.

        Raises:
            TokenAlreadyIssued: The issuer used `request_id` before.
            TooManyTokens: The limit of unexpired tokens is reached.
        """
        async with self._database.transaction() as connection:
            await _lock_head(connection)
            await _refuse_repeat(connection, record.issued_by_user_id, request_id)
            in_force = await connection.scalar(
                select(func.count())
                .select_from(service_tokens)
                .where(service_tokens.c.expires_at > record.issued_at)
            )
            if in_force is not None and in_force >= TOKENS_MAX:
                raise TooManyTokens(TOKENS_MAX)
            await connection.execute(
                insert(service_tokens).values(
                    id=record.id,
                    name=record.name,
                    user_id=record.user_id,
                    scopes=list(record.scopes),
                    issued_by_user_id=record.issued_by_user_id,
                    request_id=request_id,
                    issued_at=record.issued_at,
                    expires_at=record.expires_at,
                    signing_key_id=record.signing_key_id,
                )
            )
            await self._audit_log.append(connection, _issued(record))

    # May run: administrator.
    async def page(
        self,
        *,
        before_id: str | None,
        limit: int,
        user_id: str | None,
        include_ended: bool,
        retired_key_ids: Collection[str],
        now: datetime,
    ) -> tuple[ServiceTokenRecord, ...]:
        """Return tokens older than `before_id`, newest first."""
        listed = select(service_tokens)
        if before_id is not None:
            listed = listed.where(service_tokens.c.id < before_id)
        if user_id is not None:
            listed = listed.where(service_tokens.c.user_id == user_id)
        if not include_ended:
            listed = listed.where(
                service_tokens.c.expires_at > now,
                service_tokens.c.revoked_at.is_(None),
                func.coalesce(service_tokens.c.signing_key_id, "").not_in(retired_key_ids),
            )
        async with self._database.transaction() as connection:
            rows = await connection.execute(
                listed.order_by(service_tokens.c.id.desc()).limit(limit)
            )
            return tuple(_record(row) for row in rows.mappings())

    # May run: administrator.
    async def signing_key_ids(self) -> frozenset[str]:
        """Return the known keys of all tokens."""
        used = select(service_tokens.c.signing_key_id).distinct()
        async with self._database.transaction() as connection:
            rows = await connection.execute(used)
            return frozenset(row[0] for row in rows if row[0] is not None)

    # May run: administrator.
    async def find(self, token_id: str) -> ServiceTokenRecord | None:
        """Return a token; None if there is none with this id."""
        async with self._database.transaction() as connection:
            rows = await connection.execute(
                select(service_tokens).where(service_tokens.c.id == token_id)
            )
            row = rows.mappings().first()
            return None if row is None else _record(row)

    # May run: administrator.
    async def revoke(self, token_id: str, *, now: datetime) -> tuple[ServiceTokenRecord, int]:
        """Revoke a token, unless it is already; return it and the version of the revoked set.

        Raises:
            TokenNotFound: There is none with this id.
        """
        async with self._database.transaction() as connection:
            version = await _lock_head(connection)
            rows = await connection.execute(
                select(service_tokens).where(service_tokens.c.id == token_id)
            )
            row = rows.mappings().first()
            if row is None:
                raise TokenNotFound(token_id)
            if row["revoked_at"] is not None:
                return _record(row), version
            version += 1
            await connection.execute(update(revocation_head).values(version=version))
            changed = await connection.execute(
                update(service_tokens)
                .where(service_tokens.c.id == token_id)
                .values(revoked_at=now, revocation=version)
                .returning(service_tokens)
            )
            revoked = _record(changed.mappings().one())
            await self._audit_log.append(
                connection,
                AuditEvent(AuditAction.SERVICE_TOKEN_REVOKED, token_id, revoked.user_id),
            )
            return revoked, version

    # May run: service.
    async def revoked(self, *, now: datetime) -> RevokedSet:
        """Return all tokens that are revoked and not expired at `now`."""
        found = (
            select(service_tokens.c.id, service_tokens.c.expires_at, service_tokens.c.revocation)
            .where(service_tokens.c.revocation.is_not(None), service_tokens.c.expires_at > now)
            .order_by(service_tokens.c.revocation)
        )
        async with self._database.transaction() as connection:
            # The version is read first: a concurrent revocation is then returned twice, never
            # missed.
            version = await connection.scalar(select(revocation_head.c.version))
            rows = await connection.execute(found)
            tokens = tuple(
                RevokedToken(str(row.id), row.expires_at, row.revocation)
                for row in rows
                if row.revocation <= (version or 0)
            )
            return RevokedSet(version or 0, tokens)


def _issued(record: ServiceTokenRecord) -> AuditEvent:
    details = {
        "scopes": ",".join(record.scopes)[:DETAIL_CHARACTERS_MAX],
        "expires_at": record.expires_at.isoformat(),
    }
    return AuditEvent(AuditAction.SERVICE_TOKEN_ISSUED, record.id, record.user_id, details=details)


# May run: administrator.
async def revoke_all(connection: AsyncConnection, user_id: str, now: datetime) -> None:
    """Revoke all tokens of a user, inside the transaction that deactivates them."""
    version = await _lock_head(connection)
    rows = await connection.execute(
        select(service_tokens.c.id)
        .where(service_tokens.c.user_id == user_id, service_tokens.c.revoked_at.is_(None))
        .order_by(service_tokens.c.id)
    )
    for row in rows.all():
        version += 1
        await connection.execute(
            update(service_tokens)
            .where(service_tokens.c.id == row.id)
            .values(revoked_at=now, revocation=version)
        )
    await connection.execute(update(revocation_head).values(version=version))


# May run: administrator.
async def _lock_head(connection: AsyncConnection) -> int:
    version = await connection.scalar(select(revocation_head.c.version).with_for_update())
    return version or 0


# May run: administrator.
async def _refuse_repeat(connection: AsyncConnection, issuer: UserId, request_id: str) -> None:
    earlier = await connection.scalar(
        select(service_tokens.c.id).where(
            service_tokens.c.issued_by_user_id == issuer,
            service_tokens.c.request_id == request_id,
        )
    )
    if earlier is not None:
        raise TokenAlreadyIssued(str(earlier))


def _record(row: Mapping[Any, Any]) -> ServiceTokenRecord:
    return ServiceTokenRecord(
        id=str(row["id"]),
        name=row["name"],
        user_id=UserId(str(row["user_id"])),
        scopes=tuple(row["scopes"]),
        issued_by_user_id=UserId(str(row["issued_by_user_id"])),
        issued_at=row["issued_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        signing_key_id=row["signing_key_id"],
    )


# May run: administrator.
async def forget_names(connection: AsyncConnection, user_id: str) -> None:
    """Clear the names of a deleted user's tokens; the rows stay, so that none is accepted again."""
    await connection.execute(
        update(service_tokens).where(service_tokens.c.user_id == user_id).values(name="")
    )
