"""Notices on their way out, bounded by merging."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from parley.bus.payload import RESYNC, encode
from parley.bus.port import Notice

WAITING_MAX = 20_000


class Outbox:
    """What has to be sent: the newest version of each id, or one word that too much was lost."""

    def __init__(self, *, waiting_max: int = WAITING_MAX) -> None:
        self._waiting_max = waiting_max
        self._versions: dict[tuple[str, str], int] = {}
        self._has_lost = False
        self._something = asyncio.Event()

    def __len__(self) -> int:
        return len(self._versions) + self._has_lost

    def put(self, notices: Iterable[Notice]) -> None:
        """Take the notices in; too many of them become one word that tells all to resync."""
        for notice in notices:
            key = (notice.topic, notice.id)
            known = self._versions.get(key)
            self._versions[key] = notice.version if known is None else max(known, notice.version)
        if len(self._versions) > self._waiting_max:
            self._versions.clear()
            self._has_lost = True
        if self:
            self._something.set()

    async def until_something(self) -> None:
        """Return when there is something to send."""
        await self._something.wait()

    def take(self) -> "Batch":
        """Empty the outbox into a batch."""
        notices = tuple(Notice(*key, version) for key, version in self._versions.items())
        batch = Batch(notices, self._has_lost)
        self._versions.clear()
        self._has_lost = False
        self._something.clear()
        return batch

    def put_back(self, batch: "Batch") -> None:
        """Take in a batch whose sending failed; what was put meanwhile stays if it is newer."""
        self._has_lost = self._has_lost or batch.has_lost
        self.put(batch.notices)


@dataclass(frozen=True, slots=True)
class Batch:
    """What one flush sends."""

    notices: tuple[Notice, ...]
    has_lost: bool

    def payloads(self) -> list[str]:
        """Return the batch as notification payloads."""
        return [*([RESYNC] if self.has_lost else []), *encode(self.notices)]
