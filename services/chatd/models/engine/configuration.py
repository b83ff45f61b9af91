"""The configuration cache of a process, so that a turn needs no query.

A snapshot is valid until a change is announced. Changes are announced over the bus, with the
version of the configuration; every few seconds the version is compared, which repairs lost notices.
One caller reads and the others wait for it; a read that started before a notice is not cached.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Protocol, TypeVar

from chatd.content.domain.messages import ChatMode, strictest
from chatd.models.domain.catalogue import Catalogue, merged
from chatd.models.domain.preferences import AdvisorSettings, InstallationSettings
from chatd.models.store.catalogue import ChatFacts, KeyValues, Snapshot, UserConfig
from chatd.models.store.config_version import CATALOGUE
from chatd.primitives.domain.ids import ChatId, OwnerId
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

REPAIR_S = 5.0
# Prefix of chat ids; ids of users have none.
CHAT_PREFIX = "chat:"
USERS_MAX = 10_000
CHATS_MAX = 10_000

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Stored(Protocol):
    """The store of the configuration."""

    async def version(self) -> int:
        """Return the version of the newest change."""
        ...

    async def load(self) -> Snapshot:
        """Return the whole configuration."""
        ...

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return the settings and keys of a user."""
        ...

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return the properties of a chat that its turns depend on."""
        ...


class ConfigurationCache:
    """The configuration cache of this process.

    Args:
        stored: The store.
        given: The catalogue of the environment, and the demo.
        given_values: The values of the keys of the environment.
        clock: Time between two comparisons.
    """

    def __init__(
        self, stored: Stored, given: Catalogue, given_values: KeyValues, clock: Clock
    ) -> None:
        self._stored = stored
        self._given = given
        self._given_values = given_values
        self._clock = clock
        self._snapshot: Snapshot | None = None
        self._is_fresh = False
        self._generation = 0
        self._reading = asyncio.Lock()
        self._changed = asyncio.Event()
        self._users: BoundedCache[str, UserConfig] = BoundedCache(USERS_MAX)
        self._chats: BoundedCache[str, ChatFacts] = BoundedCache(CHATS_MAX)
        self._follow: Callable[[InstallationSettings], None] = lambda _: None

    async def current(self) -> Snapshot:
        """Return the catalogue.

        Raises:
            DatabaseUnavailable: It was never read, and cannot be.
        """
        if self._is_fresh and self._snapshot is not None:
            return self._snapshot
        async with self._reading:
            if self._is_fresh and self._snapshot is not None:
                return self._snapshot
            return await self._read()

    async def newest(self) -> Snapshot:
        """Return the current catalogue, for a caller that misses something in the cached one.

        Raises:
            DatabaseUnavailable: The version of the newest change cannot be read.
        """
        await self._compare()
        return await self.current()

    async def advisor(self) -> AdvisorSettings:
        """Return the settings of the advisor."""
        return (await self.current()).catalogue.settings.advisor

    async def names_of(self, model_id: str) -> tuple[str, str] | None:
        """Return the names for people of a model and its provider; None if it is unknown."""
        return (await self.current()).catalogue.names_of(model_id)

    async def user(self, user_id: OwnerId) -> UserConfig:
        """Return the settings and keys of a user."""
        return await self._users.get_or_read(user_id, lambda: self._stored.user(user_id))

    async def chat(self, chat_id: ChatId) -> ChatFacts:
        """Return the properties of a chat that its turns depend on, beside its history.

        Below a chat that plans or explores all others explore. The chats above are cached one by
        one, so that a change of their mode is seen without a query for each chat below.

        Raises:
            ChatNotFound: There is no such chat.
        """
        facts = await self._own_facts(chat_id)
        for ancestor_id in facts.ancestor_ids:
            if (await self._own_facts(ancestor_id)).mode is not ChatMode.ORDINARY:
                mode = strictest(facts.mode, ChatMode.EXPLORE)
                return replace(facts, mode=mode, is_restricted=True)
        return facts

    async def is_restricted(self, chat_id: ChatId) -> bool:
        """Return whether a chat above this one is in a mode that changes nothing.

        Raises:
            ChatNotFound: There is no such chat.
        """
        return (await self.chat(chat_id)).is_restricted

    async def _own_facts(self, chat_id: ChatId) -> ChatFacts:
        return await self._chats.get_or_read(chat_id, lambda: self._stored.chat(chat_id))

    def follow_settings(self, follow: Callable[[InstallationSettings], None]) -> None:
        """Call `follow` with the settings of the installation, now and after each read."""
        self._follow = follow
        if self._snapshot is not None:
            follow(self._snapshot.catalogue.settings)

    def add_discovered(self, given: Catalogue) -> None:
        """Update the catalogue of the environment, for example with listed models."""
        self._given = given
        self._outdate()

    def on_notice(self, what: str, version: int) -> None:
        """Handle the notice of a change: of the catalogue, a chat, or a user's settings."""
        if what == CATALOGUE:
            if not self._is_known(version):
                self._users.clear()
                self._outdate()
        elif what.startswith(CHAT_PREFIX):
            self._chats.forget(what.removeprefix(CHAT_PREFIX))
        else:
            self._users.forget(what)

    def on_resync(self) -> None:
        """Read everything again, because a notice may have been lost."""
        self._users.clear()
        self._chats.clear()
        self._outdate()

    async def run(self) -> None:
        """Keep the snapshot fresh, so that no turn has to wait for it."""
        while True:
            self._changed.clear()
            try:
                if self._is_fresh:
                    await self._compare()
                await self.current()
            except DatabaseUnavailable:
                logger.warning("the configuration cannot be read; going on with what is known")
            await is_set_within(self._changed, REPAIR_S, self._clock)

    async def _compare(self) -> None:
        version = await self._stored.version()
        if not self._is_known(version):
            self._users.clear()
            self._outdate()

    async def _read(self) -> Snapshot:
        """Read; while the database is unavailable the old snapshot is used."""
        generation = self._generation
        try:
            read = await self._stored.load()
        except DatabaseUnavailable:
            if self._snapshot is None:
                raise
            return self._snapshot
        values = KeyValues(read.values.sealed, self._given_values.given, read.values.box)
        self._snapshot = Snapshot(merged(read.catalogue, self._given), values)
        self._is_fresh = generation == self._generation
        self._follow(self._snapshot.catalogue.settings)
        return self._snapshot

    def _outdate(self) -> None:
        self._generation += 1
        self._is_fresh = False
        self._changed.set()

    def _is_known(self, version: int) -> bool:
        return self._snapshot is not None and self._snapshot.catalogue.version >= version
