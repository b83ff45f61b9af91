"""Offers of tools that are good for a while, so that a turn need not ask for them."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from chatd.content.domain.parts import ToolOutcome
from chatd.content.domain.tools import Outcome, ToolSpec
from chatd.primitives.domain.ids import OwnerId
from parley.clock import Clock

CATALOGUES_MAX = 4096
#: Changes are heard of over the bus; this bounds what a lost notice costs.
TTL_S = 30.0
#: An offer that lacks tools is asked for again soon: what is missing may be back.
INCOMPLETE_TTL_S = 2.0


@dataclass(frozen=True, slots=True)
class ToolCatalogue:
    """The tools that an executor offers somebody.

    Attributes:
        is_complete: False if some of its tools could not be listed now.
    """

    specs: tuple[ToolSpec, ...]
    is_complete: bool = True


@dataclass(frozen=True, slots=True)
class CatalogueKey:
    """Who is offered tools, by which replica, and of which servers that were chosen."""

    address: str
    owner_id: OwnerId
    server_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _CachedCatalogue:
    catalogue: ToolCatalogue
    expires_s: float


class ToolCatalogueCache:
    """Remembers the offers of one executor, the oldest least long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[CatalogueKey, _CachedCatalogue] = {}
        self._forgotten = 0

    async def at(
        self, key: CatalogueKey, ask: Callable[[], Awaitable[ToolCatalogue]]
    ) -> tuple[ToolSpec, ...]:
        """Return what is offered at a place, asking only if nothing good is remembered."""
        kept = self._kept.get(key)
        now_s = self._clock.monotonic()
        if kept is not None and now_s < kept.expires_s:
            return kept.catalogue.specs
        forgotten = self._forgotten
        catalogue = await ask()
        # Something changed while the answer was under way: it may be of before.
        if forgotten == self._forgotten:
            self._keep(key, catalogue, now_s)
        return catalogue.specs

    async def after(self, key: CatalogueKey, call: Awaitable[Outcome]) -> Outcome:
        """Wait for a call of a tool that was offered at a place.

        Unless it succeeds, the tool may be another one by now, or its journal, or the executor
        may be gone: the next step asks.
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
        """Ask anew for everything; what is asked for right now is not kept either."""
        self._forgotten += 1
        self._kept.clear()

    def _keep(self, key: CatalogueKey, catalogue: ToolCatalogue, asked_s: float) -> None:
        good_for_s = TTL_S if catalogue.is_complete else INCOMPLETE_TTL_S
        self._kept.pop(key, None)
        self._kept[key] = _CachedCatalogue(catalogue, asked_s + good_for_s)
        if len(self._kept) > CATALOGUES_MAX:
            del self._kept[next(iter(self._kept))]


class ServerChoiceCache:
    """Remembers which servers users may choose, so that not every new chat asks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._good_until_s: dict[tuple[OwnerId, str], float] = {}
        self.forgotten = 0

    def are_good(self, owner_id: OwnerId, server_ids: Iterable[str]) -> bool:
        """Return whether a user was allowed to choose all of these a short while ago."""
        now_s = self._clock.monotonic()
        return all(now_s < self._good_until_s.get((owner_id, each), 0.0) for each in server_ids)

    def keep(self, owner_id: OwnerId, server_ids: Iterable[str]) -> None:
        """Remember that a user may choose these."""
        until_s = self._clock.monotonic() + TTL_S
        for server_id in server_ids:
            self._good_until_s.pop((owner_id, server_id), None)
            self._good_until_s[owner_id, server_id] = until_s
        while len(self._good_until_s) > CATALOGUES_MAX:
            del self._good_until_s[next(iter(self._good_until_s))]

    def forget(self) -> None:
        """Ask anew for everything, because servers changed or may have."""
        self.forgotten += 1
        self._good_until_s.clear()
