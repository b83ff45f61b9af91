"""All stores of chats that RPC methods use, in one value."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from chatd.chats.store.access.break_glass import BreakGlass
from chatd.chats.store.access.ownership import Ownership
from chatd.chats.store.access.shares import Shares
from chatd.chats.store.agents import Agents
from chatd.chats.store.attachments import Attachments
from chatd.chats.store.chats import PostgresChats
from chatd.chats.store.forks import Forks
from chatd.chats.store.idempotency_keys import Keys
from chatd.chats.store.listing import Listing
from chatd.chats.store.metadata import Metadata
from chatd.chats.store.reading import Reading
from chatd.chats.store.text_search.hits import Search
from chatd.chats.store.trees import ChatTrees
from chatd.primitives.domain.ids import ChatId
from parley.postgres import Pool


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of chats."""

    chats: PostgresChats
    reading: Reading
    listing: Listing
    search: Search
    forks: Forks
    ownership: Ownership
    keys: Keys
    metadata: Metadata
    trees: ChatTrees
    shares: Shares
    break_glass: BreakGlass
    attachments: Attachments
    agents: Agents

    @classmethod
    def over(
        cls,
        pool: Pool,
        chats: PostgresChats,
        metadata_changed: Callable[[ChatId], None] = lambda _: None,
    ) -> Self:
        """Return all stores over one pool; `chats` is notified of the states that they write.

        `metadata_changed` is called with chats whose metadata changed without their execution.
        """
        return cls(
            chats=chats,
            reading=Reading(pool),
            listing=Listing(pool),
            search=Search(pool),
            forks=Forks(pool),
            ownership=Ownership(pool),
            keys=Keys(pool, chats),
            metadata=Metadata(pool, metadata_changed),
            trees=ChatTrees(pool, chats.publish_state, chats.retries, metadata_changed),
            shares=Shares(pool, metadata_changed),
            break_glass=BreakGlass(pool),
            attachments=Attachments(pool),
            agents=Agents(pool),
        )
