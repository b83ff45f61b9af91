"""Which chatd processes there are, read now and then, for whoever routes to them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NoReturn, Protocol

from chatd.primitives.domain.ids import WorkerId
from chatd.workers.domain import Replica
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

LOOK_S = 2.0


class KnownReplicas(Protocol):
    """Where the processes are registered."""

    async def replicas(self) -> tuple[Replica, ...]:
        """Return the processes that live."""
        ...


class ReplicaWatch:
    """Looks at the processes while anybody cares; its owner runs `run`."""

    def __init__(
        self,
        known: KnownReplicas,
        clock: Clock,
        on_replicas: Callable[[tuple[Replica, ...]], Awaitable[None]] | None = None,
    ) -> None:
        """Look at `known` every few seconds, and have `on_replicas` hear of every change first."""
        self._known = known
        self._clock = clock
        self._on_replicas = on_replicas
        self._replicas: tuple[Replica, ...] | None = None
        self._changed = asyncio.Condition()
        self._looking = asyncio.Lock()

    def address_of(self, worker_id: WorkerId) -> str | None:
        """Return where a process is, as far as was seen."""
        found = (each.address for each in self._replicas or () if each.worker_id == worker_id)
        return next(found, None)

    async def run(self) -> NoReturn:
        """Look for as long as the task lives."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_S)

    async def look(self) -> None:
        """Look now."""
        async with self._looking:
            try:
                found = await self._known.replicas()
            except DatabaseUnavailable:
                return
            if found == self._replicas:
                return
            self._replicas = found
            if self._on_replicas is not None:
                await self._on_replicas(found)
        async with self._changed:
            self._changed.notify_all()

    async def changes(self) -> AsyncIterator[tuple[Replica, ...]]:
        """Yield all processes, and all of them again at each change."""
        last: tuple[Replica, ...] | None = None
        while True:
            async with self._changed:
                while self._replicas is None or self._replicas == last:
                    await self._changed.wait()
                last = self._replicas
            yield last
