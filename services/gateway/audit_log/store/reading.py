"""Reads the audit log: pages for people, batches for export and verification."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Text, and_, cast, or_, select

from gateway.audit_log.store.tables import (
    audit_addresses,
    audit_entries,
    audit_people,
)
from parley.audit_log import AuditedLine, AuditEntry
from parley.audit_log.chain import ACTOR_OBJECT, SUBJECT_OBJECT
from parley.audit_log.verification import Person
from parley.postgres import Database

BATCH: Final = 500

# May run: administrator, process.
SELECT_HEAD = "SELECT seq, hash FROM identity.audit_head"


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which entries are listed; empty fields do not restrict.

    Attributes:
        user_id: The user who did it or whom it concerns.
        action: What was done, or the type of the object.
        object_id: What it was done to.
        from_at: Not before this time.
        until_at: Before this time.
    """

    user_id: str = ""
    action: str = ""
    object_id: str = ""
    from_at: datetime | None = None
    until_at: datetime | None = None


class AuditReader:
    """The audit log of the database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def head(self) -> tuple[int, bytes]:
        """Return the number and the hash of the last entry."""
        row = await self._database.pool.fetchrow(SELECT_HEAD)
        assert row is not None  # The migration inserts it.
        return row["seq"], row["hash"]

    # May run: administrator.
    async def page(
        self, wanted: AuditFilter, *, before_seq: int | None, limit: int
    ) -> tuple[AuditedLine, ...]:
        """Return entries with a lower number than `before_seq`, the newest first."""
        listed = _filtered(_lines(), wanted)
        if before_seq is not None:
            listed = listed.where(audit_entries.c.seq < before_seq)
        listed = listed.order_by(audit_entries.c.seq.desc()).limit(limit)
        async with self._database.reading() as connection:
            rows = await connection.execute(listed)
            return tuple(_line(row) for row in rows.mappings())

    # May run: administrator.
    async def batches(
        self, *, after_seq: int = 0, until_seq: int
    ) -> AsyncIterator[tuple[AuditedLine, ...]]:
        """Yield the entries up to a number, the oldest first; none is held open in between."""
        while after_seq < until_seq:
            listed = (
                _lines()
                .where(audit_entries.c.seq > after_seq, audit_entries.c.seq <= until_seq)
                .order_by(audit_entries.c.seq)
                .limit(BATCH)
            )
            async with self._database.reading() as connection:
                rows = await connection.execute(listed)
                lines = tuple(_line(row) for row in rows.mappings())
            if not lines:
                return
            yield lines
            after_seq = lines[-1].entry.seq


_actors = audit_people.alias("actors")
_subjects = audit_people.alias("subjects")


def _lines() -> Select[Any]:
    return (
        select(
            audit_entries,
            _actors.c.user_id.label("actor_user_id"),
            _actors.c.salt.label("actor_salt"),
            _subjects.c.user_id.label("subject_user_id"),
            _subjects.c.salt.label("subject_salt"),
            audit_addresses.c.address.label("client_address"),
            audit_addresses.c.salt.label("address_salt"),
        )
        .outerjoin(_actors, _actors.c.pseudonym == audit_entries.c.actor)
        .outerjoin(_subjects, _subjects.c.pseudonym == audit_entries.c.subject)
        .outerjoin(audit_addresses, audit_addresses.c.seq == audit_entries.c.seq)
    )


def _filtered(listed: Select[Any], wanted: AuditFilter) -> Select[Any]:
    entries = audit_entries.c
    if wanted.user_id:
        pseudonym = (
            select(audit_people.c.pseudonym)
            .where(audit_people.c.user_id == wanted.user_id)
            .scalar_subquery()
        )
        listed = listed.where(or_(entries.actor == pseudonym, entries.subject == pseudonym))
    if wanted.action:
        is_type = "." not in wanted.action
        listed = listed.where(
            entries.action.startswith(f"{wanted.action}.", autoescape=True)
            if is_type
            else entries.action == wanted.action
        )
    if wanted.object_id:
        listed = listed.where(_is_about(wanted.object_id))
    if wanted.from_at is not None:
        listed = listed.where(entries.at >= wanted.from_at)
    if wanted.until_at is not None:
        listed = listed.where(entries.at < wanted.until_at)
    return listed


def _is_about(object_id: str) -> ColumnElement[bool]:
    """Return whether an entry has an object; users are named by their pseudonym."""
    entries = audit_entries.c
    # As text, because ids of other objects need not be UUIDs.
    pseudonym = (
        select(audit_people.c.pseudonym)
        .where(cast(audit_people.c.user_id, Text) == object_id.lower())
        .scalar_subquery()
    )
    return or_(
        entries.object_id == object_id,
        and_(entries.object_id == SUBJECT_OBJECT, entries.subject == pseudonym),
        and_(entries.object_id == ACTOR_OBJECT, entries.actor == pseudonym),
    )


def _line(row: Any) -> AuditedLine:
    entry = AuditEntry(
        seq=row["seq"],
        id=str(row["id"]),
        at=row["at"],
        service=row["service"],
        action=row["action"],
        outcome=row["outcome"],
        object_id=row["object_id"],
        actor=row["actor"],
        subject=row["subject"],
        details=row["details"],
        address=row["address"],
        previous_hash=row["previous_hash"],
        hash=row["hash"],
        seal=row["seal"],
    )
    return AuditedLine(
        entry,
        _person(row["actor_user_id"], row["actor_salt"]),
        _person(row["subject_user_id"], row["subject_salt"]),
        row["client_address"],
        row["address_salt"],
    )


def _person(user_id: object, salt: bytes | None) -> Person | None:
    return None if user_id is None or salt is None else Person(str(user_id), salt)
