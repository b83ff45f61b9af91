"""Notices that wait to be sent; the number is bounded by merging versions of the same id."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from parley.bus.payload import RESYNC, encode
from parley.bus.port import Notice

WAITING_MAX = 20_000


class Outbox:
    """Notices to send: the newest version of each id, or one resync payload if too many waited."""

    def __init__(self, *, waiting_max: int = WAITING_MAX) -> None:
        self._waiting_max = waiting_max
        self._versions: dict[tuple[str, str], int] = {}
        self._has_lost = False
        self._something = asyncio.Event()

    def __len__(self) -> int:
        return len(self._versions) + self._has_lost

    def put(self, notices: Iterable[Notice]) -> None:
        """Add the notices; above `waiting_max` ids, one resync payload replaces all of them."""
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
        """Return when the outbox is not empty."""
        await self._something.wait()

    def take(self) -> "Batch":
        """Return all waiting notices as a batch and empty the outbox."""
        notices = tuple(Notice(*key, version) for key, version in self._versions.items())
        batch = Batch(notices, self._has_lost)
        self._versions.clear()
        self._has_lost = False
        self._something.clear()
        return batch

    def put_back(self, batch: "Batch") -> None:
        """Add the notices of a batch that could not be sent; newer versions put meanwhile stay."""
        self._has_lost = self._has_lost or batch.has_lost
        self.put(batch.notices)


@dataclass(frozen=True, slots=True)
class Batch:
    """The notices that one flush sends."""

    notices: tuple[Notice, ...]
    has_lost: bool

    def payloads(self) -> list[str]:
        """Return the batch as notification payloads."""
        return [*([RESYNC] if self.has_lost else []), *encode(self.notices)]
