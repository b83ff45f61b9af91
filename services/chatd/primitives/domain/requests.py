"""The reader of a request, and the key that makes a request idempotent."""

from dataclasses import dataclass
from typing import Final

from chatd.primitives.domain.ids import OwnerId

#: Stands among the groups of a reader who is an administrator, so that statements can ask for it.
ADMINISTRATORS: Final = "00000000-0000-0000-0000-00000000adad"


@dataclass(frozen=True, slots=True)
class ClientKey:
    """The idempotency key of a request: its id and a hash of its body."""

    key: str
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class Reader:
    """A user who reads: they see their own chats and those shared with them or their groups.

    One who has `ADMINISTRATORS` among the groups also sees those that a break-glass access opens.
    """

    id: OwnerId
    group_ids: tuple[str, ...] = ()
