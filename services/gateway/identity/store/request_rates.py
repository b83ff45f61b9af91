"""Buckets of request rates in PostgreSQL, which all gateways fill together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from parley.postgres import Database

# May run: process.
FILL = """
    WITH given AS (
        SELECT bucket, added, age FROM unnest($1::bytea[], $2::interval[], $3::interval[])
            AS given (bucket, added, age))
    INSERT INTO identity.request_rates AS known (bucket, empty_at)
    SELECT bucket, $4::timestamptz - age + added FROM given ORDER BY bucket
    ON CONFLICT (bucket) DO UPDATE SET empty_at = greatest(
        known.empty_at + (SELECT added FROM given WHERE given.bucket = known.bucket),
        excluded.empty_at)
    RETURNING bucket,
        extract(epoch FROM empty_at - $4::timestamptz)::double precision AS empty_s
"""
# Rows that are being filled are left to the next time.
# May run: process.
FORGET = """
    DELETE FROM identity.request_rates WHERE bucket IN (
        SELECT bucket FROM identity.request_rates WHERE empty_at < $1
        ORDER BY bucket FOR UPDATE SKIP LOCKED)
"""


@dataclass(frozen=True, slots=True)
class Filling:
    """What one process adds to a bucket.

    Attributes:
        policy: The policy that counts.
        subject: What it counts: an address, a user or a key.
        added: How long the counted requests take to leak.
        age: How long ago the first of them was counted.
    """

    policy: str
    subject: str
    added: timedelta
    age: timedelta

    @property
    def bucket(self) -> bytes:
        """The digest under which it is stored: who it is about is not."""
        return sha256(f"{self.policy} {self.subject}".encode()).digest()


class RequestRateStore:
    """The part of the schema `identity` for request rates."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def fill(self, fillings: Sequence[Filling], now: datetime) -> Mapping[Filling, float]:
        """Fill the buckets; return in how many seconds each is empty."""
        rows = await self._database.pool.fetch(
            FILL,
            [each.bucket for each in fillings],
            [each.added for each in fillings],
            [each.age for each in fillings],
            now,
        )
        empty_s = {row["bucket"]: row["empty_s"] for row in rows}
        return {each: empty_s[each.bucket] for each in fillings}

    async def forget(self, now: datetime) -> None:
        """Delete the buckets that are empty."""
        await self._database.pool.execute(FORGET, now)
