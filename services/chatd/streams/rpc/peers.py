"""Channels to the other chatd processes, found by their leases."""

import grpc

from chatd.primitives.domain.ids import WorkerId
from chatd.streams.rpc.replicas import ReplicaWatch
from chatd.workers.domain import Replica
from parley.rpc import Address, Channels, RpcError


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
