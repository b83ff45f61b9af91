"""Buckets of request rates in PostgreSQL, which all gateways fill together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from parley.postgres import Database

# May run: process.
FILL = """
    INSERT INTO identity.request_rates AS known (bucket, empty_at)
    SELECT bucket, $3::timestamptz + added
    FROM unnest($1::bytea[], $2::interval[]) AS given (bucket, added)
    ON CONFLICT (bucket) DO UPDATE
    SET empty_at = greatest(known.empty_at, $3::timestamptz) + (excluded.empty_at - $3::timestamptz)
    RETURNING bucket, empty_at
"""
# May run: process.
FORGET = "DELETE FROM identity.request_rates WHERE empty_at < $1"


@dataclass(frozen=True, slots=True)
class Filling:
    """What one process adds to a bucket.

    Attributes:
        policy: The policy that counts.
        subject: What it counts: an address, a user or a key.
        added: How long the counted requests take to leak.
    """

    policy: str
    subject: str
    added: timedelta

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
        # In one order for all, so that no two processes wait for one another.
        ordered = sorted(fillings, key=lambda each: each.bucket)
        buckets, added = [each.bucket for each in ordered], [each.added for each in ordered]
        rows = await self._database.pool.fetch(FILL, buckets, added, now)
        empty_at = {row["bucket"]: row["empty_at"] for row in rows}
        return {each: (empty_at[each.bucket] - now).total_seconds() for each in ordered}

    async def forget(self, now: datetime) -> None:
        """Delete the buckets that are empty."""
        await self._database.pool.execute(FORGET, now)
