"""Caches tool catalogues for a short time, so that not every turn requests them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Outcome, ToolSpec
from chatd.primitives.domain.ids import OwnerId
from parley.clock import Clock

CATALOGUES_MAX = 4096
#: Changes are published on the bus; this limits the effect of a lost notice.
TTL_S = 30.0
#: An incomplete catalogue is requested again soon: the missing tools may be available again.
INCOMPLETE_TTL_S = 2.0


@dataclass(frozen=True, slots=True)
class ToolCatalogue:
    """The tools that an executor offers a user.

    Attributes:
        is_complete: False if some of its tools could not be listed now.
    """

    specs: tuple[ToolSpec, ...]
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class CatalogueKey:
    """The cache key of a catalogue: the replica, the user, and the chosen servers."""

    address: str
    owner_id: OwnerId
    server_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _CachedCatalogue:
    catalogue: ToolCatalogue
    expires_s: float


class ToolCatalogueCache:
    """Caches the catalogues of one executor; the oldest are evicted first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[CatalogueKey, _CachedCatalogue] = {}
        self._forgotten = 0

    async def at(
        self, key: CatalogueKey, ask: Callable[[], Awaitable[ToolCatalogue]]
    ) -> tuple[ToolSpec, ...]:
        """Return the catalogue of a key from the cache, or request it."""
        kept = self._kept.get(key)
        now_s = self._clock.monotonic()
        if kept is not None and now_s < kept.expires_s:
            return kept.catalogue.specs
        forgotten = self._forgotten
        catalogue = await ask()
        # An invalidation during the request: the response may be older than it.
        if forgotten == self._forgotten:
            self._keep(key, catalogue, now_s)
        return catalogue.specs

    async def after(self, key: CatalogueKey, call: Awaitable[Outcome]) -> Outcome:
        """Await a call of a tool from the catalogue of a key.

        Unless it succeeds, the entry is dropped: the tool or its journal may have changed, or the
        executor may be gone, so the next step requests the catalogue again.
        """
        is_well = False
        try:
            outcome = await call
            is_well = outcome.outcome is ToolOutcome.DONE
            return outcome
        finally:
            if not is_well:
                self._kept.pop(key, None)

    def forget(self) -> None:
        """Drop all entries; responses to requests in progress are not cached either."""
        self._forgotten += 1
        self._kept.clear()

    def _keep(self, key: CatalogueKey, catalogue: ToolCatalogue, asked_s: float) -> None:
        good_for_s = TTL_S if catalogue.is_complete else INCOMPLETE_TTL_S
        self._kept.pop(key, None)
        self._kept[key] = _CachedCatalogue(catalogue, asked_s + good_for_s)
        if len(self._kept) > CATALOGUES_MAX:
            del self._kept[next(iter(self._kept))]


class ServerChoiceCache:
    """Caches which servers users may choose, so that not every new chat requests it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._good_until_s: dict[tuple[OwnerId, str], float] = {}
        self.forgotten = 0

    def are_good(self, owner_id: OwnerId, server_ids: Iterable[str]) -> bool:
        """Return whether a recent check allowed the user to choose all of these servers."""
        now_s = self._clock.monotonic()
        return all(now_s < self._good_until_s.get((owner_id, each), 0.0) for each in server_ids)

    def keep(self, owner_id: OwnerId, server_ids: Iterable[str]) -> None:
        """Cache that a user may choose these servers."""
        until_s = self._clock.monotonic() + TTL_S
        for server_id in server_ids:
            self._good_until_s.pop((owner_id, server_id), None)
            self._good_until_s[owner_id, server_id] = until_s
        while len(self._good_until_s) > CATALOGUES_MAX:
            del self._good_until_s[next(iter(self._good_until_s))]

    def forget(self) -> None:
        """Drop all entries, because servers changed or notices may be lost."""
        self.forgotten += 1
        self._good_until_s.clear()
