"""Counted attempts in PostgreSQL, as leaky buckets (the generic cell rate algorithm)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from parley.postgres import Database

# May run: credential.
CHARGE = """
    INSERT INTO identity.sign_in_attempts AS known (subject, free_at)
    VALUES ($1, $2::timestamptz + $3)
    ON CONFLICT (subject) DO UPDATE SET free_at = greatest(known.free_at, $2::timestamptz) + $3
    WHERE greatest(known.free_at, $2::timestamptz) + $3 <= $2::timestamptz + $4
    RETURNING free_at
"""
# May run: credential.
FREE_AT = "SELECT free_at FROM identity.sign_in_attempts WHERE subject = $1"
# May run: credential.
REFUND = """
    UPDATE identity.sign_in_attempts SET free_at = free_at - $2::interval WHERE subject = $1
"""
# Rows that another attempt counts at the moment are left: it may wait for what this one counted.
# May run: credential.
FORGET = """
    DELETE FROM identity.sign_in_attempts WHERE subject IN (
        SELECT subject FROM identity.sign_in_attempts WHERE free_at < $1 FOR UPDATE SKIP LOCKED
    )
"""


@dataclass(frozen=True, slots=True)
class Charge:
    """One attempt of a subject.

    Attributes:
        subject: The digest of what is counted.
        refill: After which time one more attempt is accepted.
        burst: How far attempts may be ahead of time: the refills of all that are accepted at once.
    """

    subject: bytes
    refill: timedelta
    burst: timedelta


class AttemptStore:
    """The part of the schema `identity` for attempts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def charge(self, charges: Sequence[Charge], now: datetime) -> timedelta | None:
        """Count an attempt for all subjects, or for none; return how long it has to wait."""
        async with self._database.pool.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            # In one order for all, so that no two wait for one another.
            for each in sorted(charges, key=lambda each: each.subject):
                row = await connection.fetchrow(CHARGE, each.subject, now, each.refill, each.burst)
                if row is None:
                    free_at: datetime = await connection.fetchval(FREE_AT, each.subject)
                    await transaction.rollback()
                    return free_at + each.refill - each.burst - now
            await connection.execute(FORGET, now)
            await transaction.commit()
        return None

    async def refund(self, charges: Sequence[Charge]) -> None:
        """Take back an attempt."""
        for each in charges:
            await self._database.pool.execute(REFUND, each.subject, each.refill)
