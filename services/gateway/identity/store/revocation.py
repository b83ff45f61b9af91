"""Ends what a user signs in with, within the transaction that changes the user."""

from datetime import datetime

from sqlalchemy import delete, update
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.identity.store.schema import (
    account_exports,
    api_keys,
    known_devices,
    linked_identities,
    passkeys,
    passwords,
    recovery_codes,
    sessions,
    sign_in_links,
    totp_secrets,
    unfinished_sign_ins,
)


# May run: administrator.
async def end_sessions(connection: AsyncConnection, user_id: str) -> None:
    """End all sessions of a user."""
    await connection.execute(delete(sessions).where(sessions.c.user_id == user_id))


# May run: administrator.
async def revoke_links(
    connection: AsyncConnection, user_id: str, now: datetime, *, but: str | None = None
) -> None:
    """Take back the unused one-time links of a user."""
    await connection.execute(
        update(sign_in_links)
        .where(
            sign_in_links.c.user_id == user_id,
            sign_in_links.c.used_at.is_(None),
            sign_in_links.c.revoked_at.is_(None),
            sign_in_links.c.id.is_distinct_from(but),
        )
        .values(revoked_at=now)
    )


# May run: administrator.
async def revoke_api_keys(connection: AsyncConnection, user_id: str, now: datetime) -> None:
    """Revoke all API keys of a user."""
    await connection.execute(
        update(api_keys)
        .where(api_keys.c.user_id == user_id, api_keys.c.revoked_at.is_(None))
        .values(revoked_at=now)
    )


# May run: administrator.
async def erase_credentials(connection: AsyncConnection, user_id: str) -> None:
    """Delete all that a user signed in with."""
    for table in (
        sessions,
        api_keys,
        passwords,
        sign_in_links,
        known_devices,
        linked_identities,
        account_exports,
    ):
        await connection.execute(delete(table).where(table.c.user_id == user_id))
    await erase_second_factors(connection, user_id)


# May run: administrator.
async def erase_second_factors(connection: AsyncConnection, user_id: str) -> None:
    """Delete all second factors and passkeys of a user."""
    for table in (totp_secrets, recovery_codes, passkeys, unfinished_sign_ins):
        await connection.execute(delete(table).where(table.c.user_id == user_id))
