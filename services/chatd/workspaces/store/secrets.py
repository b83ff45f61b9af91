"""Secrets for workspaces in PostgreSQL: encrypted, and decrypted only for a recorded use."""

import uuid
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

import asyncpg

from chatd.primitives.domain.errors import InvalidRequest, RequestIdReused, VersionConflict
from chatd.primitives.store.audit_outbox import record_event
from chatd.primitives.store.rows import Row
from chatd.workspaces.domain.errors import NodeNotFound, StaleNode
from chatd.workspaces.domain.secrets import (
    Delivery,
    Outcome,
    RecordedUse,
    RequestedUse,
    Secret,
    SecretNotFound,
    SecretNotGranted,
    hint_of,
)
from chatd.workspaces.domain.spec import WorkspaceSpec
from chatd.workspaces.store.nodes import static_node_id
from chatd.workspaces.store.rows import read_json
from parley.audit_log import AuditAction, AuditEvent
from parley.postgres import Connection, Pool
from parley.secrets import Sealed, SecretBox

TABLE = "chat.secrets"
COLUMN = "sealed"
#: The owner id of the installation's secrets.
INSTALLATION = "00000000-0000-0000-0000-000000000000"

_COLUMNS = """id, owner_id, name, description, username, delivery, hosts, header, hint, version,
    created_at, last_used_at"""

# The caller's own and the installation's, by name.
# May run: owner.
SELECT_PAGE = f"""
    SELECT {_COLUMNS} FROM chat.secrets
    WHERE owner_id IN ($1, '{INSTALLATION}') AND (name, id) > ($2, $3::uuid)
    ORDER BY name, id LIMIT $4
"""

# One secret by its name, locked for a replacement.
# May run: owner, administrator.
LOCK = f"""
    SELECT {_COLUMNS}, sealed, sealed_key_id, request_hash FROM chat.secrets
    WHERE owner_id = $1 AND name = $2 FOR UPDATE
"""

# May run: owner, administrator.
INSERT = f"""
    INSERT INTO chat.secrets (id, owner_id, name, description, username, delivery, hosts, header,
        hint, sealed, sealed_key_id, version, request_hash, created_at, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 1, $12, clock_timestamp(),
        clock_timestamp())
    ON CONFLICT DO NOTHING RETURNING {_COLUMNS}
"""

# May run: checked by LOCK.
UPDATE = f"""
    UPDATE chat.secrets SET description = $2, username = $3, delivery = $4, hosts = $5,
        header = $6, hint = $7, sealed = $8, sealed_key_id = $9, request_hash = $10,
        version = version + 1, changed_at = clock_timestamp()
    WHERE id = $1 RETURNING {_COLUMNS}
"""

# Delete a secret: a user's own for that user, the installation's for administrators.
# May run: owner, administrator.
DELETE = f"""
    DELETE FROM chat.secrets
    WHERE id = $1 AND (owner_id = $2 OR (owner_id = '{INSTALLATION}' AND $3::boolean))
    RETURNING id
"""

# The secrets with these names for a user; their own take precedence over the installation's.
# May run: owner, service.
SELECT_NAMED = f"""
    SELECT DISTINCT ON (name) {_COLUMNS}, sealed, sealed_key_id FROM chat.secrets
    WHERE name = ANY ($2::text[]) AND owner_id IN ($1, '{INSTALLATION}')
    ORDER BY name, owner_id = '{INSTALLATION}'
"""

# The node that requests a value, and the workspace that it names; without authorisation.
# May run: service.
SELECT_NODE = "SELECT registration_epoch, state, address FROM chat.nodes WHERE id = $1"
# May run: service.
SELECT_PLACED = """
    SELECT owner_id, spec FROM chat.workspaces
    WHERE id = $1 AND node_id = ANY ($2::uuid[]) AND epoch = $3
        AND state IN ('preparing', 'ready', 'busy')
"""

# Uses of secrets by the workspaces of a user, newest first.
# May run: owner.
SELECT_USES = """
    SELECT id, workspace_id, node_id, secret_name, host, purpose, outcome, used_at
    FROM chat.secret_uses
    WHERE owner_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2)
        AND ($3::timestamptz IS NULL OR (used_at, id) < ($3, $4::uuid))
    ORDER BY used_at DESC, id DESC LIMIT $5
"""

# The record of a request for a use; a repeated request is recorded once.
# May run: service.
INSERT_USE = """
    INSERT INTO chat.secret_uses (id, node_id, request_id, workspace_id, owner_id, secret_id,
        secret_name, host, purpose, outcome, used_at)
    VALUES (gen_random_uuid(), $1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp())
    ON CONFLICT (node_id, request_id) DO NOTHING
"""
# May run: service.
TOUCH = """
    UPDATE chat.secrets SET last_used_at = clock_timestamp()
    WHERE id = $1 AND (last_used_at IS NULL
        OR last_used_at < clock_timestamp() - interval '1 minute')
"""


@dataclass(frozen=True, slots=True)
class SecretPlace:
    """The position of a page of secrets."""

    name: str
    id: str


@dataclass(frozen=True, slots=True)
class UsePlace:
    """The position of a page of uses."""

    used_at: datetime
    id: str


@dataclass(frozen=True, slots=True)
class PutSecret:
    """A stored secret, and the one it replaced; None if it is new or the request was repeated."""

    secret: Secret
    replaced: Secret | None = None


class PostgresSecrets:
    """Stores secrets and records their uses."""

    def __init__(self, pool: Pool, box: SecretBox) -> None:
        self._pool = pool
        self._box = box

    async def list(
        self, owner_id: str, after: SecretPlace | None, length: int
    ) -> tuple[Secret, ...]:
        """Return a user's own secrets and the installation's, by name."""
        place = after or SecretPlace("", INSTALLATION)
        rows = await self._pool.fetch(SELECT_PAGE, owner_id, place.name, place.id, length)
        return tuple(map(_secret_of, rows))

    async def put(
        self, secret: Secret, value: bytes, request_hash: bytes, expected_version: str = ""
    ) -> PutSecret:
        """Store a secret, or a new value or use under its name; no value keeps the stored one.

        Raises:
            InvalidRequest: it is new and has no value.
            SecretValueNeeded: no value is given for a use that the stored one was not given for.
            VersionConflict: it changed since that version.
            RequestIdReused: the request came with another value before.
        """
        while True:
            async with self._pool.acquire() as connection, connection.transaction():
                row = await connection.fetchrow(LOCK, secret.owner_id or INSTALLATION, secret.name)
                if row is not None:
                    return await self._replace(
                        connection, row, secret, value, request_hash, expected_version
                    )
                made = await self._insert(connection, secret, value, request_hash)
            # Otherwise another request stored a secret with this name meanwhile.
            if made is not None:
                return PutSecret(made)

    async def delete(self, secret_id: str, owner_id: str, *, is_administrator: bool) -> None:
        """Delete a secret; workspaces that it was granted to cannot use it any more.

        Raises:
            SecretNotFound: there is none that this user may delete.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            row = await connection.fetchrow(DELETE, secret_id, owner_id, is_administrator)
            if row is None:
                raise SecretNotFound(secret_id)
            await record_event(connection, AuditEvent(AuditAction.SECRET_DELETED, secret_id))

    async def named(self, owner_id: str, names: Collection[str]) -> tuple[Secret, ...]:
        """Return the secrets with these names that a user may use, in their order."""
        rows = await self._pool.fetch(SELECT_NAMED, owner_id, [*names])
        found = {row["name"]: _secret_of(row) for row in rows}
        return tuple(found[name] for name in dict.fromkeys(names) if name in found)

    async def use(self, wish: RequestedUse) -> tuple[Secret, bytes]:
        """Return a secret with its value, for one use that is recorded before this returns.

        Raises:
            NodeNotFound: the node never registered.
            StaleNode: it has registered again since, or was marked as lost.
            SecretNotGranted: the workspace may not use it there; that is recorded too.
        """
        async with self._pool.acquire() as connection, connection.transaction():
            address = await _address_of(connection, wish)
            # Workspaces that were placed before the node registered have the id derived from
            # its address.
            node_ids = (wish.node_id, static_node_id(address))
            outcome, owner_id, row = await _judged(connection, wish, node_ids)
            await connection.execute(
                INSERT_USE,
                wish.node_id,
                wish.request_id,
                wish.workspace_id,
                owner_id,
                None if row is None else row["id"],
                wish.secret_name,
                wish.host,
                wish.purpose,
                outcome,
            )
            if row is not None and outcome is Outcome.GIVEN:
                await connection.execute(TOUCH, row["id"])
        if row is None or outcome is not Outcome.GIVEN:
            raise SecretNotGranted(wish.secret_name, outcome)
        return _secret_of(row), self._open(row)

    async def uses(
        self, owner_id: str, workspace_id: str, after: UsePlace | None, length: int
    ) -> tuple[RecordedUse, ...]:
        """Return the uses of a user's workspaces, or of one of them, newest first."""
        time, use_id = (None, None) if after is None else (after.used_at, after.id)
        rows = await self._pool.fetch(
            SELECT_USES, owner_id, workspace_id or None, time, use_id, length
        )
        return tuple(map(_use_of, rows))

    async def _insert(
        self,
        connection: Connection,
        secret: Secret,
        value: bytes,
        request_hash: bytes,
    ) -> Secret | None:
        if not value:
            raise InvalidRequest("value", "is empty, and there is no secret of this name yet")
        sealed = self._box.seal(value, table=TABLE, column=COLUMN, row_id=secret.id)
        row = await connection.fetchrow(
            INSERT,
            secret.id,
            secret.owner_id or INSTALLATION,
            secret.name,
            secret.description,
            secret.username,
            secret.delivery,
            [*secret.hosts],
            secret.header,
            hint_of(value),
            sealed.ciphertext,
            sealed.key_id,
            request_hash,
        )
        if row is None:
            return None
        await record_event(connection, _put_event(secret, secret.id, is_new=True))
        return _secret_of(row)

    async def _replace(
        self,
        connection: Connection,
        row: asyncpg.Record,
        secret: Secret,
        value: bytes,
        request_hash: bytes,
        expected_version: str,
    ) -> PutSecret:
        stored = _secret_of(row)
        if row["request_hash"] == request_hash:
            if value and self._open(row) != value:
                raise RequestIdReused(secret.name)
            return PutSecret(stored)
        if expected_version not in ("", str(row["version"])):
            raise VersionConflict(str(row["version"]))
        if not value:
            secret.check_kept_value(stored)
        secret_id = str(row["id"])
        kept = Sealed(row["sealed"], row["sealed_key_id"])
        sealed = (
            self._box.seal(value, table=TABLE, column=COLUMN, row_id=secret_id) if value else kept
        )
        changed = await connection.fetchrow(
            UPDATE,
            secret_id,
            secret.description,
            secret.username,
            secret.delivery,
            [*secret.hosts],
            secret.header,
            hint_of(value) if value else row["hint"],
            sealed.ciphertext,
            sealed.key_id,
            request_hash,
        )
        assert changed is not None  # The row is locked.
        await record_event(connection, _put_event(secret, secret_id, is_new=False))
        return PutSecret(_secret_of(changed), stored)

    def _open(self, row: asyncpg.Record) -> bytes:
        sealed = Sealed(row["sealed"], row["sealed_key_id"])
        return self._box.open(sealed, table=TABLE, column=COLUMN, row_id=str(row["id"]))


def _put_event(secret: Secret, secret_id: str, *, is_new: bool) -> AuditEvent:
    details = {
        "holder": "user" if secret.owner_id else "installation",
        "delivery": secret.delivery.value,
        "is_new": str(is_new).lower(),
    }
    return AuditEvent(AuditAction.SECRET_PUT, secret_id, details=details)


def new_secret_id(owner_id: str, name: str, request_id: str) -> str:
    """Return the id of the secret that a request creates; it is deterministic."""
    return str(uuid.uuid5(uuid.UUID(owner_id or INSTALLATION), f"secret {name} {request_id}"))


async def _address_of(connection: Connection, wish: RequestedUse) -> str:
    """Return the address of the requesting node, if its registration is current."""
    node = await connection.fetchrow(SELECT_NODE, wish.node_id)
    if node is None:
        raise NodeNotFound(wish.node_id)
    is_known = node["state"] in ("active", "draining")
    if not is_known or node["registration_epoch"] != wish.registration_epoch:
        raise StaleNode(wish.node_id)
    address: str = node["address"]
    return address


async def _judged(
    connection: Connection,
    wish: RequestedUse,
    node_ids: tuple[str, ...],
) -> tuple[Outcome, str | None, asyncpg.Record | None]:
    """Return the outcome of a request, the owner of its workspace, and the secret."""
    placed = await connection.fetchrow(SELECT_PLACED, wish.workspace_id, [*node_ids], wish.epoch)
    if placed is None:
        return Outcome.NOT_PLACED, None, None
    owner_id = str(placed["owner_id"])
    if wish.secret_name not in read_json(placed["spec"], WorkspaceSpec).secret_names:
        return Outcome.NOT_GRANTED, owner_id, None
    row = await connection.fetchrow(SELECT_NAMED, owner_id, [wish.secret_name])
    if row is None:
        return Outcome.NO_SUCH_SECRET, owner_id, None
    is_right = _secret_of(row).may_go_to(wish.host)
    return Outcome.GIVEN if is_right else Outcome.WRONG_HOST, owner_id, row


def _use_of(row: Row) -> RecordedUse:
    return RecordedUse(
        id=str(row["id"]),
        workspace_id=str(row["workspace_id"]),
        node_id=str(row["node_id"]),
        secret_name=row["secret_name"],
        host=row["host"],
        purpose=row["purpose"],
        outcome=Outcome(row["outcome"]),
        used_at=row["used_at"],
    )


def _secret_of(row: Row) -> Secret:
    owner_id = str(row["owner_id"])
    return Secret(
        id=str(row["id"]),
        name=row["name"],
        owner_id="" if owner_id == INSTALLATION else owner_id,
        delivery=Delivery(row["delivery"]),
        hosts=tuple(row["hosts"]),
        description=row["description"],
        username=row["username"],
        header=row["header"],
        hint=row["hint"],
        version=row["version"],
        created_at=row["created_at"],
        last_used_at=row["last_used_at"],
    )
