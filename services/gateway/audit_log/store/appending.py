"""Appends to the chain, within the transaction of the change that is recorded.

The row of the head is locked until the transaction ends, so entries are in the order of commits and
the chain has no forks. Append last: what is locked after the head could make two wait for another.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy import delete, func, literal_column, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from gateway.audit_log.store.tables import (
    audit_addresses,
    audit_entries,
    audit_head,
    audit_people,
)
from parley.audit_log import AuditEntry, AuditEvent, address_digest, pseudonym_of
from parley.audit_log.chain import ACTOR_OBJECT, SUBJECT_OBJECT, hashed
from parley.rpc import current_origin

SERVICE: Final = "gateway"
NOBODY: Final = "00000000-0000-0000-0000-000000000000"
#: 244 random bits of PostgreSQL's strong generator.
NEW_SALT: Final[Any] = literal_column(
    "uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())"
)


@dataclass(frozen=True, slots=True)
class DeliveredEvent:
    """An event that another service recorded.

    Attributes:
        id: Its id; an event that was appended before is not appended again.
        at: When it happened.
        service: The service.
        event: The event, with its actor.
        address: The address of the client; empty if it is not known.
    """

    id: str
    at: datetime
    service: str
    event: AuditEvent
    address: str


@dataclass(frozen=True, slots=True)
class AuditLog:
    """Appends entries.

    Attributes:
        seal_key: Seals entries, so that the database alone cannot make any; None leaves it out.
        appended: Called with each event of this service, before its transaction ends.
    """

    seal_key: bytes | None = field(default=None, repr=False)
    appended: Callable[[AuditEvent], None] = lambda event: None

    async def append(self, connection: AsyncConnection, event: AuditEvent) -> None:
        """Append an event of this service, done by the user of the call that is being served."""
        origin = current_origin()
        details = dict(event.details)
        if origin.token_id:
            details.setdefault("service_token_id", origin.token_id)
        event = replace(event, details=details, actor_user_id=event.actor_user_id or origin.user_id)
        head = await _locked_head(connection)
        entry = _entry(head, event, id_=str(head.id), at=head.at, service=SERVICE)
        await self._insert(connection, entry, event, origin.address)
        self.appended(event)

    # May run: service.
    async def append_delivered(self, connection: AsyncConnection, given: DeliveredEvent) -> None:
        """Append an event of another service, unless that was done before."""
        # The head is locked first: a second delivery of the event waits, and then finds it.
        head = await _locked_head(connection)
        known = select(audit_entries.c.seq).where(audit_entries.c.id == given.id)
        if await connection.scalar(known) is not None:
            return
        entry = _entry(head, given.event, id_=given.id, at=given.at, service=given.service)
        await self._insert(connection, entry, given.event, given.address)

    # May run: administrator.
    async def erase(self, connection: AsyncConnection, user_id: str) -> None:
        """Delete what names a user beside the chain; append their deletion before.

        Their pseudonym is left, which nobody can trace back any more.
        """
        pseudonym = await connection.scalar(
            delete(audit_people)
            .where(audit_people.c.user_id == user_id)
            .returning(audit_people.c.pseudonym)
        )
        own = select(audit_entries.c.seq).where(
            (audit_entries.c.actor == pseudonym)
            | (audit_entries.c.actor.is_(None) & (audit_entries.c.subject == pseudonym))
        )
        await connection.execute(delete(audit_addresses).where(audit_addresses.c.seq.in_(own)))

    # May run: process.
    async def _insert(
        self, connection: AsyncConnection, entry: AuditEntry, event: AuditEvent, address: str
    ) -> None:
        salt: bytes | None = None
        if address:
            salt = await _new_salt(connection)
        entry = hashed(
            replace(
                entry,
                actor=await _pseudonym(connection, event.actor_user_id),
                subject=await _pseudonym(connection, event.subject_user_id),
                address=None if salt is None else address_digest(address, salt),
            ),
            self.seal_key,
        )
        await _write(connection, entry)
        if salt is not None:
            await connection.execute(
                insert(audit_addresses).values(seq=entry.seq, address=address, salt=salt)
            )


#: The audit log of a gateway without a key.
UNSEALED: Final = AuditLog()


def _entry(head: Any, event: AuditEvent, *, id_: str, at: datetime, service: str) -> AuditEntry:
    return AuditEntry(
        seq=head.seq + 1,
        id=id_,
        at=at,
        service=service,
        action=event.action,
        outcome=event.outcome,
        object_id=_object_of(event),
        actor=None,
        subject=None,
        details=dict(event.details),
        address=None,
        previous_hash=head.hash,
    )


def _object_of(event: AuditEvent) -> str:
    """Return the object of an event without the id of a user, which could never be erased."""
    object_id = event.object_id.lower()
    if object_id and object_id == event.subject_user_id:
        return SUBJECT_OBJECT
    if object_id and object_id == event.actor_user_id:
        return ACTOR_OBJECT
    return event.object_id


# May run: process.
async def _locked_head(connection: AsyncConnection) -> Any:
    """Lock the head; return its number and hash, and an id and a time for a new event."""
    head = select(
        audit_head.c.seq,
        audit_head.c.hash,
        func.gen_random_uuid().label("id"),
        func.clock_timestamp().label("at"),
    )
    return (await connection.execute(head.with_for_update())).one()


# May run: process.
async def _pseudonym(connection: AsyncConnection, user_id: str | None) -> bytes | None:
    """Return the pseudonym of a user, made when they are first named; the head is locked."""
    # Also asked for nobody: the answer to a wrong password takes the same time for every login.
    known = select(audit_people.c.pseudonym).where(audit_people.c.user_id == (user_id or NOBODY))
    found = await connection.scalar(known)
    if user_id is None:
        return None
    if found is not None:
        return bytes(found)
    salt = await _new_salt(connection)
    pseudonym = pseudonym_of(user_id, salt)
    await connection.execute(
        insert(audit_people).values(pseudonym=pseudonym, user_id=user_id, salt=salt)
    )
    return pseudonym


# May run: no-rows.
async def _new_salt(connection: AsyncConnection) -> bytes:
    """Return random bytes."""
    made = await connection.execute(select(NEW_SALT))
    return bytes(made.scalar_one())


# May run: process.
async def _write(connection: AsyncConnection, entry: AuditEntry) -> None:
    await connection.execute(
        insert(audit_entries).values(
            seq=entry.seq,
            id=entry.id,
            at=entry.at,
            service=entry.service,
            action=entry.action,
            outcome=entry.outcome,
            object_id=entry.object_id,
            actor=entry.actor,
            subject=entry.subject,
            details=dict(entry.details),
            address=entry.address,
            previous_hash=entry.previous_hash,
            hash=entry.hash,
            seal=entry.seal,
        )
    )
    await connection.execute(update(audit_head).values(seq=entry.seq, hash=entry.hash))
