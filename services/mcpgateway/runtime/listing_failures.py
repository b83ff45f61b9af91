"""What is known of servers that did not list their tools, so that no turn waits for them again.

The failure of a server is answered from here. After a pause, which doubles up to a minute, the next
listing has the server asked in the background; listings go on with the failure until it answers.
"""

import asyncio
from dataclasses import dataclass
from typing import Final

from mcpgateway.servers.domain import Target
from mcpgateway.servers.errors import UpstreamFailed
from mcpgateway.servers.health import OF_LOGIN
from parley.cache import BoundedCache
from parley.clock import Clock

PAUSE_FIRST_S: Final = 2.0
PAUSE_MAX_S: Final = 60.0
FAILURES_MAX: Final = 2000
DUE_MAX: Final = 256

CatalogueKey = tuple[str, int, str, str]


@dataclass(frozen=True, slots=True)
class _Failure:
    failure: UpstreamFailed
    pause_s: float
    due_at: float


class ListingFailures:
    """The failures of servers, by catalogue: the server as configured, the user, their identity."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: BoundedCache[CatalogueKey, _Failure] = BoundedCache(FAILURES_MAX)
        self._due: asyncio.Queue[Target] = asyncio.Queue(DUE_MAX)

    def check(self, target: Target) -> None:
        """Reject a listing of a server that failed; have it asked again if its pause is over.

        Raises:
            UpstreamFailed: It failed lately.
        """
        known = self._known.get(target.catalogue_key)
        if known is None:
            return
        now = self._clock.monotonic()
        if now >= known.due_at and not self._due.full():
            # It is due once: the next time is known when it has been asked.
            waiting = _Failure(known.failure, known.pause_s, now + PAUSE_MAX_S)
            self._known.put(target.catalogue_key, waiting)
            self._due.put_nowait(target)
        failure = known.failure
        # A new one each time, because an error keeps the frames through which it was raised.
        raise UpstreamFailed(
            failure.reason, str(failure), retry_after_ms=failure.retry_after_ms
        ) from None

    async def next_due(self) -> Target:
        """Wait for a server that is to be asked again."""
        return await self._due.get()

    def failed(self, target: Target, failure: UpstreamFailed) -> None:
        """Remember that a server failed; the login of a user is looked at each time."""
        key = target.catalogue_key
        if failure.reason in OF_LOGIN:
            self._known.pop(key)
            return
        known = self._known.get(key)
        pause_s = PAUSE_FIRST_S if known is None else min(2 * known.pause_s, PAUSE_MAX_S)
        kept = UpstreamFailed(failure.reason, str(failure), retry_after_ms=failure.retry_after_ms)
        self._known.put(key, _Failure(kept, pause_s, self._clock.monotonic() + pause_s))

    def succeeded(self, target: Target) -> None:
        """Forget the failure of a server."""
        self._known.pop(target.catalogue_key)

    def forget(self, server_id: str | None = None) -> None:
        """Forget the failures of a server, or of all, so that the next listing asks it."""
        for key, _ in tuple(self._known.items()):
            if server_id in (None, key[0]):
                self._known.pop(key)
