"""Everything that the outside asks of the store, in one value."""

from dataclasses import dataclass
from typing import Self

from chatd.store.attachments import Attachments
from chatd.store.chats import PostgresChats
from chatd.store.families import Families
from chatd.store.keys import Keys
from chatd.store.listing import Listing
from chatd.store.metadata import Metadata
from chatd.store.ownership import Ownership
from chatd.store.reading import Reading
from chatd.store.shares import Shares
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
    def over(cls, pool: Pool, chats: PostgresChats) -> Self:
        """Return all rooms over one pool; what they write, `chats` learns."""
        return cls(
            chats=chats,
            reading=Reading(pool),
            listing=Listing(pool),
            ownership=Ownership(pool),
            keys=Keys(pool, chats),
            metadata=Metadata(pool),
            families=Families(pool, chats.noticed),
            shares=Shares(pool),
            attachments=Attachments(pool),
        )
