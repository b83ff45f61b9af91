"""Who makes a request, and the key that makes it repeatable."""

from dataclasses import dataclass

from chatd.primitives.domain.ids import OwnerId


@dataclass(frozen=True, slots=True)
class ClientKey:
    """What makes a request repeatable: its id and a hash of its body."""

    key: str
    body_hash: bytes


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who reads: they see their own chats and those shared with them or their groups."""

    id: OwnerId
    group_ids: tuple[str, ...] = ()
