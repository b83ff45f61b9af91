"""The catalogues of servers per user, with the tools that are quarantined."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from mcpgateway.client.call import Upstream
from mcpgateway.runtime.listing_failures import ListingFailures
from mcpgateway.runtime.stored_catalogues import StoredCatalogues
from mcpgateway.servers.definitions import Definitions
from mcpgateway.servers.domain import Catalogue, Server, Target, Tool
from mcpgateway.servers.errors import UpstreamFailed
from mcpgateway.servers.health import ServerHealth
from parley.cache import BoundedCache
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

TTL_S: Final = 300.0
# Servers with a TTL of 0 would be asked at every turn; a definition that changed meanwhile is
# detected by its digest when the tool is called.
TTL_MIN_S: Final = 5.0
CATALOGUES_MAX: Final = 2000
#: Counted for each user, also where users share one.
CATALOGUES_BYTES_MAX: Final = 256 * 1024 * 1024
ASKED_AT_ONCE_MAX: Final = 16

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CachedCatalogue:
    """A catalogue and its age.

    Attributes:
        quarantined: Tools that must not be offered, because their definitions changed.
    """

    catalogue: Catalogue
    fetched_at: datetime
    fresh_until: float
    quarantined: frozenset[str] = frozenset()

    def tool(self, name: str) -> Tool | None:
        """Return a tool by the server's own name."""
        return self.catalogue.tools.get(name)


class CatalogueCache:
    """Caches the catalogues of servers per user, newest last.

    Args:
        upstream: Requests the tools from servers.
        definitions: Decides which definitions are quarantined.
        health: Records how servers do.
        stored: Keeps catalogues over a restart.
        clock: The clock of the TTL.
        changed: Called with the server whose tools changed.
    """

    def __init__(
        self,
        upstream: Upstream,
        definitions: Definitions,
        health: ServerHealth,
        stored: StoredCatalogues,
        clock: Clock,
        changed: Callable[[str], None],
    ) -> None:
        self._upstream = upstream
        self._definitions = definitions
        self._health = health
        self._stored = stored
        self._clock = clock
        self._changed = changed
        self._failures = ListingFailures(clock)
        self._known: BoundedCache[tuple[str, int, str, str], CachedCatalogue] = BoundedCache(
            CATALOGUES_MAX,
            size_max=CATALOGUES_BYTES_MAX,
            size_of=lambda known: known.catalogue.size_bytes,
        )
        self._shared: BoundedCache[tuple[str, int], Catalogue] = BoundedCache(
            CATALOGUES_MAX, size_max=CATALOGUES_BYTES_MAX, size_of=lambda each: each.size_bytes
        )

    def known(self, target: Target) -> CachedCatalogue | None:
        """Return the last catalogue, of any age."""
        return self._known.get(target.catalogue_key)

    async def current(self, target: Target) -> CachedCatalogue:
        """Return a fresh catalogue from the cache, or request it from the server.

        After a restart the stored one serves for a few seconds. A server that failed lately is not
        asked: `ask_failed` does that.

        Raises:
            UpstreamFailed: The server does not respond, or did not lately.
        """
        known = self.fresh(target)
        if known is None and self.known(target) is None and await self._restore(target):
            known = self.fresh(target)
        return known or await self.fetch(target)

    def fresh(self, target: Target) -> CachedCatalogue | None:
        """Return a catalogue that is fresh; None if the server has to be asked.

        Raises:
            UpstreamFailed: The server did not respond lately.
        """
        known = self.known(target)
        if known is not None and self._clock.monotonic() < known.fresh_until:
            return known
        self._failures.check(target)
        return None

    async def ask_failed(self) -> None:
        """Ask servers that failed again, when a listing wanted them and their pause is over."""
        at_once = asyncio.Semaphore(ASKED_AT_ONCE_MAX)
        async with asyncio.TaskGroup() as tasks:
            while True:
                target = await self._failures.next_due()
                await at_once.acquire()
                asking = tasks.create_task(self._ask_again(target))
                asking.add_done_callback(lambda _: at_once.release())

    async def _ask_again(self, target: Target) -> None:
        try:
            await self.fetch(target)
        except (UpstreamFailed, DatabaseUnavailable):
            return
        self._changed(target.server.id)

    async def timed_out(self, target: Target, failure: UpstreamFailed) -> None:
        """Remember that a server did not list its tools as long as a listing waited."""
        await self._failed(target, failure)

    async def _failed(self, target: Target, failure: UpstreamFailed) -> None:
        logger.warning("server %s was not listed: %s", target.server.settings.slug, failure)
        self._failures.failed(target, failure)
        await self._health.failed(target.server.id, failure)

    def retry(self, server_id: str) -> None:
        """Have a server that failed asked by the next listing, because it was seen to work."""
        self._failures.forget(server_id)

    async def _restore(self, target: Target) -> bool:
        """Put the stored catalogue into the cache; return whether there is one."""
        stored = await self._stored.find(target)
        if stored is None:
            return False
        quarantined = await self._definitions.quarantined(target.server, stored.catalogue.tools)
        fresh_until = self._clock.monotonic() + TTL_MIN_S
        catalogue = self._shared_with_others(target.server, stored.catalogue)
        restored = CachedCatalogue(catalogue, stored.fetched_at, fresh_until, quarantined)
        if self.known(target) is None:
            self._known.put(target.catalogue_key, restored)
        return True

    async def fetch(self, target: Target) -> CachedCatalogue:
        """Request the catalogue from the server.

        Raises:
            UpstreamFailed: It does not respond.
        """
        server = target.server
        try:
            catalogue = await self._upstream.list_tools(target)
        except UpstreamFailed as failure:
            await self._failed(target, failure)
            raise
        quarantined = await self._definitions.quarantined(server, catalogue.tools)
        ttl_s = TTL_S if catalogue.ttl_s is None else min(max(catalogue.ttl_s, TTL_MIN_S), TTL_S)
        catalogue = self._shared_with_others(server, catalogue)
        fetched = CachedCatalogue(
            catalogue, self._clock.now(), self._clock.monotonic() + ttl_s, quarantined
        )
        before = self.known(target)
        if before is not None and (before.catalogue.tools, before.quarantined) != (
            catalogue.tools,
            quarantined,
        ):
            self._changed(server.id)
        self._known.put(target.catalogue_key, fetched)
        self._failures.succeeded(target)
        await self._stored.put(target, catalogue, fetched.fetched_at)
        await self._health.is_well(server.id, len(catalogue.tools))
        return fetched

    def _shared_with_others(self, server: Server, catalogue: Catalogue) -> Catalogue:
        """Return the catalogue that another user has, if it is the same: most servers have one."""
        key = (server.id, server.version)
        shared = self._shared.get(key)
        if shared is not None and shared == catalogue:
            return shared
        self._shared.put(key, catalogue)
        return catalogue

    def forget_user(self, user_id: str, server_id: str | None = None) -> None:
        """Drop what a user was offered, by one server or by all."""
        for key, _ in tuple(self._known.items()):
            of_server, _, owner, _ = key
            if owner == user_id and server_id in (None, of_server):
                self._known.pop(key)

    def expire(self, server_id: str | None = None) -> None:
        """Have the catalogues of a server, or all, requested again at their next use."""
        self._failures.forget(server_id)
        for key, known in tuple(self._known.items()):
            if server_id in (None, key[0]):
                self._known.put(key, replace(known, fresh_until=0.0))
