"""The chain of entries: what is hashed of each, and how people are named in it.

Each entry's hash covers its content and the hash before it. People and addresses are not in the
chain, but digests of them with random salts, which lie beside it: with its salt a digest proves the
person; without it, it says nothing. Erasing a person deletes salts and keeps every hash valid.
"""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import msgspec

GENESIS: Final = bytes(32)
#: In place of the id of an object that is the subject or the actor of its entry.
SUBJECT_OBJECT: Final = "subject"
ACTOR_OBJECT: Final = "actor"
_FORMAT: Final = "parley audit entry 1"
_PERSON: Final = b"parley audit person 1\0"
_ADDRESS: Final = b"parley audit address 1\0"


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One entry of the chain.

    Attributes:
        seq: Its number; the first is 1.
        id: The id of the event.
        at: When it happened.
        service: The service that recorded it.
        action: What was done; text, so that entries of newer versions can be verified.
        outcome: Whether it was done.
        object_id: The id of what it was done to; of a user `SUBJECT_OBJECT` or `ACTOR_OBJECT`.
        actor: The pseudonym of the user who did it; None for a service.
        subject: The pseudonym of the user whom it concerns; None for none.
        details: Further facts.
        address: The digest of the client's address; None if there was none.
        previous_hash: The hash of the entry before.
        hash: The hash of this entry.
        seal: The MAC of the hash; None if the gateway had no key.
    """

    seq: int
    id: str
    at: datetime
    service: str
    action: str
    outcome: str
    object_id: str
    actor: bytes | None
    subject: bytes | None
    details: Mapping[str, str]
    address: bytes | None
    previous_hash: bytes
    hash: bytes = b""
    seal: bytes | None = None


def entry_hash(entry: AuditEntry) -> bytes:
    """Return the hash that an entry must have."""
    content = (
        _FORMAT,
        entry.seq,
        entry.id,
        entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        entry.service,
        entry.action,
        entry.outcome,
        entry.object_id,
        _hex(entry.actor),
        _hex(entry.subject),
        sorted(entry.details.items()),
        _hex(entry.address),
        entry.previous_hash.hex(),
    )
    return hashlib.sha256(msgspec.json.encode(content)).digest()


def seal_of(key: bytes, entry_hash: bytes) -> bytes:
    """Return the MAC by which an entry proves that a gateway wrote it."""
    return hmac.digest(key, entry_hash, "sha256")


def hashed(entry: AuditEntry, seal_key: bytes | None) -> AuditEntry:
    """Return the entry with its hash, and its seal if there is a key."""
    digest = entry_hash(entry)
    return replace(entry, hash=digest, seal=None if seal_key is None else seal_of(seal_key, digest))


def pseudonym_of(user_id: str, salt: bytes) -> bytes:
    """Return the digest by which a user is named in the chain."""
    return hmac.digest(salt, _PERSON + user_id.lower().encode(), "sha256")


def address_digest(address: str, salt: bytes) -> bytes:
    """Return the digest of an address in the chain."""
    return hmac.digest(salt, _ADDRESS + address.encode(), "sha256")


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
