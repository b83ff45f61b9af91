"""Caches tool catalogues for a short time, so that not every turn requests them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Outcome, ToolSpec
from chatd.primitives.domain.ids import OwnerId
from parley.cache import BoundedCache
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
    """The cache key of a catalogue: the replica, the user, the mode and the chosen servers."""

    address: str
    owner_id: OwnerId
    mode: ChatMode = ChatMode.ORDINARY
    server_ids: tuple[str, ...] | None = ()


class ToolCatalogueCache:
    """Caches the catalogues of one executor; the least recently used are evicted."""

    def __init__(self, clock: Clock) -> None:
        self._kept: BoundedCache[CatalogueKey, ToolCatalogue] = BoundedCache(
            CATALOGUES_MAX, clock=clock, ttl_of=_ttl_s
        )

    async def at(
        self, key: CatalogueKey, ask: Callable[[], Awaitable[ToolCatalogue]]
    ) -> tuple[ToolSpec, ...]:
        """Return the catalogue of a key from the cache, or request it."""
        return (await self._kept.get_or_read(key, ask)).specs

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
                self._kept.pop(key)

    def forget(self) -> None:
        """Drop all entries; responses to requests in progress are not cached either."""
        self._kept.clear()


def _ttl_s(catalogue: ToolCatalogue) -> float:
    return TTL_S if catalogue.is_complete else INCOMPLETE_TTL_S


class ServerChoiceCache:
    """Caches which servers users may choose, so that not every new chat requests it."""

    def __init__(self, clock: Clock) -> None:
        self._good: BoundedCache[tuple[OwnerId, str], bool] = BoundedCache(
            CATALOGUES_MAX, clock=clock, ttl_of=lambda _: TTL_S
        )
        self.forgotten = 0

    def are_good(self, owner_id: OwnerId, server_ids: Iterable[str]) -> bool:
        """Return whether a recent check allowed the user to choose all of these servers."""
        return all(self._good.get((owner_id, each)) for each in server_ids)

    def keep(self, owner_id: OwnerId, server_ids: Iterable[str]) -> None:
        """Cache that a user may choose these servers."""
        for server_id in server_ids:
            self._good.put((owner_id, server_id), True)

    def forget(self) -> None:
        """Drop all entries, because servers changed or notices may be lost."""
        self.forgotten += 1
        self._good.clear()
