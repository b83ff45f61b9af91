"""Push subscriptions in PostgreSQL; endpoints are sealed, and opened only for deliveries."""

import hashlib
import json
import logging
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass

import asyncpg

from chatd.primitives.domain.errors import RequestIdReused, ResourceNotFound
from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.store.audit_outbox import record_event
from chatd.push.domain.subscription import (
    SUBSCRIPTIONS_MAX,
    PushAddress,
    PushSubscription,
    PushTarget,
    TooManySubscriptions,
)
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Pool
from parley.secrets import Sealed, SecretBox, SecretsError

logger = logging.getLogger(__name__)

RESOURCE = "push subscription"
TABLE = "chat.push_subscriptions"
COLUMN = "sealed"

_COLUMNS = "id, name, host, created_at, last_sent_at, last_error"

# The oldest first.
# May run: owner.
SELECT_SUBSCRIPTIONS = f"""
    SELECT {_COLUMNS} FROM chat.push_subscriptions WHERE owner_id = $1 ORDER BY created_at, id
"""

# The subscriptions of a user are counted before one is added.
# May run: no-rows.
LOCK_OWNER = "SELECT pg_advisory_xact_lock(hashtextextended('push ' || $1, 0))"

# The subscription that a request stored last, has its id from an earlier one, or has its endpoint.
# May run: owner.
SELECT_STORED = f"""
    SELECT {_COLUMNS}, request_id, request_hash, endpoint_hash FROM chat.push_subscriptions
    WHERE owner_id = $1 AND (request_id = $2 OR id = $2 OR endpoint_hash = $3)
    ORDER BY request_id = $2 DESC, id = $2 DESC LIMIT 1 FOR UPDATE
"""

# May run: owner.
COUNT_SUBSCRIPTIONS = "SELECT count(*) FROM chat.push_subscriptions WHERE owner_id = $1"

# May run: owner.
INSERT_SUBSCRIPTION = f"""
    INSERT INTO chat.push_subscriptions (id, owner_id, name, host, endpoint_hash, sealed,
        sealed_key_id, request_id, request_hash, created_at, last_error)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp(), '')
    RETURNING {_COLUMNS}
"""

# May run: owner.
UPDATE_SUBSCRIPTION = f"""
    UPDATE chat.push_subscriptions SET name = $3, sealed = $4, sealed_key_id = $5,
        request_id = $6, request_hash = $7, last_error = ''
    WHERE owner_id = $1 AND id = $2 RETURNING {_COLUMNS}
"""

# May run: owner.
DELETE_SUBSCRIPTION = """
    DELETE FROM chat.push_subscriptions WHERE owner_id = $1 AND id = $2 RETURNING id
"""

# With what is needed to send.
# May run: owner, process.
SELECT_TARGETS = """
    SELECT id, owner_id, sealed, sealed_key_id FROM chat.push_subscriptions WHERE owner_id = $1
    ORDER BY created_at, id
"""

# May run: owner.
SELECT_TARGET = """
    SELECT id, owner_id, sealed, sealed_key_id FROM chat.push_subscriptions
    WHERE owner_id = $1 AND id = $2
"""

# What became of a delivery.
# May run: process.
RECORD_DELIVERY = """
    UPDATE chat.push_subscriptions SET last_error = $2,
        last_sent_at = CASE WHEN $2 = '' THEN clock_timestamp() ELSE last_sent_at END
    WHERE id = $1
"""

# Of a subscription that has ended; one that was stored again since is another one.
# May run: process.
DELETE_ENDED = "DELETE FROM chat.push_subscriptions WHERE id = $1 AND endpoint_hash = $2"


@dataclass(frozen=True, slots=True)
class NewSubscription:
    """A subscription as a request gives it.

    Attributes:
        id: Its id, if there is none with its endpoint yet; derived from the request.
        request_hash: The hash of the request.
    """

    id: str
    owner_id: OwnerId
    name: str
    host: str
    address: PushAddress
    request_hash: bytes


class PostgresSubscriptions:
    """Stores push subscriptions, and calls `changed` with their owner after each change."""

    def __init__(
        self, pool: Pool, box: SecretBox, changed: Callable[[OwnerId], None] = lambda _: None
    ) -> None:
        self._pool = pool
        self._box = box
        self._changed = changed

    async def of_owner(self, owner_id: OwnerId) -> tuple[PushSubscription, ...]:
        """Return the subscriptions of a user, the oldest first."""
        return tuple(map(_shown, await self._pool.fetch(SELECT_SUBSCRIPTIONS, owner_id)))

    async def put(self, new: NewSubscription) -> PushSubscription:
        """Store a subscription; one with the same endpoint is replaced and keeps its id.

        Raises:
            RequestIdReused: The request id was used for another body.
            TooManySubscriptions: The user has as many as may be.
        """
        digest = endpoint_hash(new.address)
        async with self._pool.acquire() as connection, connection.transaction():
            await connection.execute(LOCK_OWNER, new.owner_id)
            row = await connection.fetchrow(SELECT_STORED, new.owner_id, new.id, digest)
            if row is not None and str(row["request_id"]) == new.id:
                if row["request_hash"] != new.request_hash:
                    raise RequestIdReused(new.id)
                return _shown(row)
            if row is not None and row["endpoint_hash"] != digest:
                # The request made it; another one has stored it again since.
                raise RequestIdReused(new.id)
            if row is None:
                if (
                    await connection.fetchval(COUNT_SUBSCRIPTIONS, new.owner_id)
                    >= SUBSCRIPTIONS_MAX
                ):
                    raise TooManySubscriptions(SUBSCRIPTIONS_MAX)
                sealed = self._sealed(new.address, new.id)
                stored = await connection.fetchrow(
                    INSERT_SUBSCRIPTION,
                    new.id,
                    new.owner_id,
                    new.name,
                    new.host,
                    digest,
                    sealed.ciphertext,
                    sealed.key_id,
                    new.id,
                    new.request_hash,
                )
            else:
                sealed = self._sealed(new.address, str(row["id"]))
                stored = await connection.fetchrow(
                    UPDATE_SUBSCRIPTION,
                    new.owner_id,
                    row["id"],
                    new.name,
                    sealed.ciphertext,
                    sealed.key_id,
                    new.id,
                    new.request_hash,
                )
            assert stored is not None
            event = AuditEvent(
                AuditAction.PUSH_SUBSCRIPTION_PUT,
                str(stored["id"]),
                subject_user_id=new.owner_id,
                details={"host": new.host[:120]},
            )
            await record_event(connection, event)
        self._changed(new.owner_id)
        return _shown(stored)

    async def delete(self, owner_id: OwnerId, subscription_id: str) -> None:
        """Delete a subscription of a user.

        Raises:
            ResourceNotFound: The user has no such subscription.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            found = await connection.fetchval(DELETE_SUBSCRIPTION, owner_id, subscription_id)
            if found is None:
                raise ResourceNotFound(RESOURCE, subscription_id)
            event = AuditEvent(
                AuditAction.PUSH_SUBSCRIPTION_DELETED, subscription_id, subject_user_id=owner_id
            )
            await record_event(connection, event)
        self._changed(owner_id)

    async def targets(self, owner_id: OwnerId) -> tuple[PushTarget, ...]:
        """Return the devices of a user; those that cannot be decrypted are left out."""
        rows = await self._pool.fetch(SELECT_TARGETS, owner_id)
        return tuple(target for row in rows if (target := self._readable(row)) is not None)

    async def target(self, owner_id: OwnerId, subscription_id: str) -> PushTarget:
        """Return one device of a user.

        Raises:
            ResourceNotFound: The user has no such subscription.
            SecretsError: It cannot be decrypted.
        """
        row = await self._pool.fetchrow(SELECT_TARGET, owner_id, subscription_id)
        if row is None:
            raise ResourceNotFound(RESOURCE, subscription_id)
        return self._target_of(row)

    async def record(self, target: PushTarget, problem: str) -> None:
        """Record that a notification was accepted, or why it was not."""
        await self._pool.execute(RECORD_DELIVERY, target.id, problem)

    async def delete_ended(self, target: PushTarget) -> None:
        """Delete a subscription of which the push service says that it has ended."""
        await self._pool.execute(DELETE_ENDED, target.id, endpoint_hash(target.address))
        self._changed(target.owner_id)

    def _readable(self, row: asyncpg.Record) -> PushTarget | None:
        try:
            return self._target_of(row)
        except SecretsError as unreadable:
            logger.warning("a push subscription cannot be decrypted: %s", unreadable)
            return None

    def _target_of(self, row: asyncpg.Record) -> PushTarget:
        subscription_id = str(row["id"])
        sealed = Sealed(row["sealed"], row["sealed_key_id"])
        plain = self._box.open(sealed, table=TABLE, column=COLUMN, row_id=subscription_id)
        fields = json.loads(plain)
        address = PushAddress(
            fields["endpoint"], b64decode(fields["p256dh"]), b64decode(fields["auth"])
        )
        return PushTarget(subscription_id, OwnerId(str(row["owner_id"])), address)

    def _sealed(self, address: PushAddress, subscription_id: str) -> Sealed:
        fields = {
            "endpoint": address.endpoint,
            "p256dh": b64encode(address.public_key).decode(),
            "auth": b64encode(address.auth).decode(),
        }
        plain = json.dumps(fields).encode()
        return self._box.seal(plain, table=TABLE, column=COLUMN, row_id=subscription_id)


def endpoint_hash(address: PushAddress) -> bytes:
    """Return the hash by which the same endpoint is recognised."""
    return hashlib.sha256(address.endpoint.encode()).digest()


def _shown(row: asyncpg.Record) -> PushSubscription:
    return PushSubscription(
        str(row["id"]),
        row["name"],
        row["host"],
        row["created_at"],
        row["last_sent_at"],
        row["last_error"],
    )
