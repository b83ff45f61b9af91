"""Counts the events that slow readers lose, and logs them with a rate limit."""

import logging
from dataclasses import dataclass

from chatd.primitives.domain.ids import ChatId
from parley.cache import BoundedCache
from parley.clock import Clock

LOGGED_EVERY_S = 10.0
CHATS_MAX = 1000

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class _Dropped:
    """Losses of one chat's readers since the last log line."""

    logged_at: float
    events: int = 0
    readers: int = 0


class Drops:
    """Logs dropped events at most once in ten seconds for each chat.

    Attributes:
        events: How many events were dropped so far, in all.
        readers: How many readers were dropped so far, in all.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._chats: BoundedCache[ChatId, _Dropped] = BoundedCache(CHATS_MAX)
        self.events = 0
        self.readers = 0

    def note(self, chat_id: ChatId, events: int) -> None:
        """Count a reader that was too slow and was dropped."""
        now = self._clock.monotonic()
        self.events += events
        self.readers += 1
        found = self._chats.get(chat_id) or _Dropped(now - LOGGED_EVERY_S)
        found.events += events
        found.readers += 1
        self._chats.put(chat_id, found)
        if now - found.logged_at >= LOGGED_EVERY_S:
            logger.warning(
                "readers of a chat fell behind",
                extra={
                    "chat_id": chat_id,
                    "dropped_count": found.events,
                    "readers_count": found.readers,
                },
            )
            found.logged_at, found.events, found.readers = now, 0, 0

    def forget(self, chat_id: ChatId) -> None:
        """Drop the counts of a chat that is no longer followed."""
        self._chats.pop(chat_id)
