"""Channels to the other chatd processes, as far as their leases tell."""

import grpc

from chatd.primitives.domain.ids import WorkerId
from chatd.streams.rpc.replicas import ReplicaWatch
from chatd.workers.domain import Replica
from parley.rpc import Address, Channels, RpcError


async def know_replicas(channels: Channels, replicas: tuple[Replica, ...]) -> None:
    """Let channels lead to these processes and no others."""
    await channels.update([Address.parse(each.address) for each in replicas])


class ReplicaChannels:
    """Leads to processes by their worker ids."""

    def __init__(self, replicas: ReplicaWatch, channels: Channels) -> None:
        self._replicas = replicas
        self._channels = channels

    async def channel_to(self, worker_id: WorkerId) -> grpc.aio.Channel | None:
        """Return a channel to a process, None if it is not there."""
        if self._replicas.address_of(worker_id) is None:
            await self._replicas.look()
        address = self._replicas.address_of(worker_id)
        if address is None:
            return None
        try:
            return self._channels.at(Address.parse(address))
        except RpcError:
            return None
