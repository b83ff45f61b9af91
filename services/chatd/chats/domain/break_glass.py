"""Accesses of administrators to the chats of other users."""

import hashlib
from dataclasses import dataclass
from datetime import datetime

import msgspec

from chatd.primitives.domain.ids import OwnerId


@dataclass(frozen=True, slots=True)
class BreakGlassAccess:
    """An access of an administrator to the chats of a user."""

    id: str
    administrator_id: OwnerId
    owner_id: OwnerId
    reason: str
    opened_at: datetime
    expires_at: datetime
    ended_at: datetime | None
    is_open: bool


class AccessPlace(msgspec.Struct, frozen=True, array_like=True):
    """The position of a page of accesses."""

    opened_at: datetime
    id: str


def reason_digest(access_id: str, reason: str) -> str:
    """Return the digest that proves the reason of an access.

    Reasons tell of people, and are deleted with them; entries of the audit log are not.
    """
    return hashlib.sha256(f"{access_id}\n{reason}".encode()).hexdigest()
