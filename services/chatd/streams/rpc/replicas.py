"""The registered chatd processes, polled for clients that route to them, and channels to them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NoReturn, Protocol

import grpc

from chatd.primitives.domain.ids import WorkerId
from chatd.workers.domain import Replica
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.rpc import Address, Channels, RpcError

LOOK_S = 2.0


class KnownReplicas(Protocol):
    """The registry of processes."""

    async def replicas(self) -> tuple[Replica, ...]:
        """Return the live processes."""
        ...


class ReplicaWatch:
    """Polls the registry of processes; its owner runs `run`."""

    def __init__(
        self,
        known: KnownReplicas,
        clock: Clock,
        on_replicas: Callable[[tuple[Replica, ...]], Awaitable[None]] | None = None,
    ) -> None:
        """Poll `known` every few seconds, and call `on_replicas` first with every change."""
        self._known = known
        self._clock = clock
        self._on_replicas = on_replicas
        self._replicas: tuple[Replica, ...] | None = None
        self._changed = asyncio.Condition()
        self._looking = asyncio.Lock()

    def address_of(self, worker_id: WorkerId) -> str | None:
        """Return the address of a process, as of the last poll."""
        found = (each.address for each in self._replicas or () if each.worker_id == worker_id)
        return next(found, None)

    async def run(self) -> NoReturn:
        """Poll until cancelled."""
        while True:
            await self.look()
            await self._clock.sleep(LOOK_S)

    async def look(self) -> None:
        """Poll now."""
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
        """Yield all processes that clients may call, and all of them again at each change."""
        last: tuple[Replica, ...] | None = None
        while True:
            async with self._changed:
                while (found := self._callable()) is None or found == last:
                    await self._changed.wait()
                last = found
            yield last

    def _callable(self) -> tuple[Replica, ...] | None:
        if self._replicas is None:
            return None
        return tuple(each for each in self._replicas if not each.is_quarantine)


async def know_replicas(channels: Channels, replicas: tuple[Replica, ...]) -> None:
    """Set the channels' addresses to those of these processes."""
    await channels.update([Address.parse(each.address) for each in replicas])


class ReplicaChannels:
    """Finds the channel to a process by its worker id."""

    def __init__(self, replicas: ReplicaWatch, channels: Channels) -> None:
        self._replicas = replicas
        self._channels = channels

    async def channel_to(self, worker_id: WorkerId) -> grpc.aio.Channel | None:
        """Return a channel to a process; None if the process is not registered."""
        if self._replicas.address_of(worker_id) is None:
            await self._replicas.look()
        address = self._replicas.address_of(worker_id)
        if address is None:
            return None
        try:
            return self._channels.at(Address.parse(address))
        except RpcError:
            return None
