"""Everything that the outside asks of the store, in one value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from chatd.chats.store.attachments import Attachments
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.idempotency_keys import Keys
from chatd.chats.store.listing import Listing
from chatd.chats.store.metadata import Metadata
from chatd.chats.store.ownership import Ownership
from chatd.chats.store.reading import Reading
from chatd.chats.store.shares import Shares
from chatd.chats.store.trees import Families
from chatd.primitives.domain.ids import ChatId
from parley.postgres import Pool


@dataclass(frozen=True, slots=True)
class Stores:
    """The rooms of the store."""

    chats: PostgresChats
    reading: Reading
    listing: Listing
    ownership: Ownership
    keys: Keys
    metadata: Metadata
    families: Families
    shares: Shares
    attachments: Attachments

    @classmethod
    def over(
        cls, pool: Pool, chats: PostgresChats, noted: Callable[[ChatId], None] = lambda _: None
    ) -> Self:
        """Return all rooms over one pool; what they write, `chats` learns.

        `noted` is told of chats that look different though their execution did not move.
        """
        return cls(
            chats=chats,
            reading=Reading(pool),
            listing=Listing(pool),
            ownership=Ownership(pool),
            keys=Keys(pool, chats),
            metadata=Metadata(pool, noted),
            families=Families(pool, chats.noticed, noted),
            shares=Shares(pool, noted),
            attachments=Attachments(pool),
        )
