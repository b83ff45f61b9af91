"""The reader of a request, and the key that makes a request idempotent."""

from dataclasses import dataclass

from chatd.primitives.domain.ids import OwnerId


@dataclass(frozen=True, slots=True)
class ClientKey:
    """The idempotency key of a request: its id and a hash of its body."""

    key: str
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class Reader:
    """A user who reads: they see their own chats and those shared with them or their groups."""

    id: OwnerId
    group_ids: tuple[str, ...] = ()
