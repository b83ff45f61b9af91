"""The lines of an export: entries with what proves their people, as JSON objects."""

from datetime import datetime

import msgspec

from parley.audit_log.chain import AuditEntry
from parley.audit_log.verification import AuditedLine, Person


class _Person(msgspec.Struct):
    user_id: str
    salt: str


class _Address(msgspec.Struct):
    address: str
    salt: str


class _Line(msgspec.Struct):
    """An entry in JSON; digests and hashes are hexadecimal."""

    seq: int
    id: str
    at: datetime
    service: str
    action: str
    outcome: str
    object_id: str
    actor: str | None
    subject: str | None
    details: dict[str, str]
    address: str | None
    previous_hash: str
    hash: str
    seal: str | None
    actor_person: _Person | None
    subject_person: _Person | None
    client_address: _Address | None


def encode_line(line: AuditedLine) -> bytes:
    """Return an entry as a line of the export."""
    entry = line.entry
    encoded = _Line(
        seq=entry.seq,
        id=entry.id,
        at=entry.at,
        service=entry.service,
        action=entry.action,
        outcome=entry.outcome,
        object_id=entry.object_id,
        actor=_hex(entry.actor),
        subject=_hex(entry.subject),
        details=dict(entry.details),
        address=_hex(entry.address),
        previous_hash=entry.previous_hash.hex(),
        hash=entry.hash.hex(),
        seal=_hex(entry.seal),
        actor_person=_encode_person(line.actor),
        subject_person=_encode_person(line.subject),
        client_address=(
            None
            if line.address is None or line.address_salt is None
            else _Address(line.address, line.address_salt.hex())
        ),
    )
    return msgspec.json.encode(encoded) + b"\n"


def decode_line(text: bytes) -> AuditedLine:
    """Read a line of an export.

    Raises:
        ValueError: It is not such a line.
    """
    line = msgspec.json.decode(text, type=_Line)
    entry = AuditEntry(
        seq=line.seq,
        id=line.id,
        at=line.at,
        service=line.service,
        action=line.action,
        outcome=line.outcome,
        object_id=line.object_id,
        actor=_bytes(line.actor),
        subject=_bytes(line.subject),
        details=line.details,
        address=_bytes(line.address),
        previous_hash=bytes.fromhex(line.previous_hash),
        hash=bytes.fromhex(line.hash),
        seal=_bytes(line.seal),
    )
    address = line.client_address
    return AuditedLine(
        entry,
        _decode_person(line.actor_person),
        _decode_person(line.subject_person),
        None if address is None else address.address,
        None if address is None else bytes.fromhex(address.salt),
    )


def _encode_person(person: Person | None) -> _Person | None:
    return None if person is None else _Person(person.user_id, person.salt.hex())


def _decode_person(person: _Person | None) -> Person | None:
    return None if person is None else Person(person.user_id, bytes.fromhex(person.salt))


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
