"""Selects replicas by key, so that every process selects the same one for the same key."""

import asyncio
from collections.abc import Callable, Iterable
from hashlib import blake2b

import grpc

from parley.rpc.address import Address
from parley.rpc.errors import NoAddress
from parley.rpc.limits import LIMITS


def ranked(key: str, addresses: Iterable[Address]) -> tuple[Address, ...]:
    """Return the addresses in the order of preference of `key`.

    Each address is weighted by a hash of it and the key alone (rendezvous hashing), so that adding
    or removing one moves only the keys that prefer it.
    """
    return tuple(sorted(addresses, key=lambda address: _weight(key, address), reverse=True))


class Channels:
    """Channels to the replicas of one service, opened when first needed."""

    def __init__(
        self, addresses: Iterable[Address], open: Callable[[Address], grpc.aio.Channel]
    ) -> None:
        self._addresses = tuple(dict.fromkeys(addresses))
        self._open = open
        self._channels: dict[Address, grpc.aio.Channel] = {}

    @property
    def addresses(self) -> tuple[Address, ...]:
        """The known replicas."""
        return self._addresses

    def address_for(self, key: str) -> Address:
        """Return the replica that `key` prefers.

        Raises:
            NoAddress: No replica is known.
        """
        match self._addresses:
            case ():
                raise NoAddress
            case (only,):
                return only
            case several:
                return max(several, key=lambda address: _weight(key, address))

    def for_key(self, key: str) -> grpc.aio.Channel:
        """Return the channel to the replica that `key` prefers.

        Raises:
            NoAddress: No replica is known.
        """
        return self.at(self.address_for(key))

    def at(self, address: Address) -> grpc.aio.Channel:
        """Return the channel to `address`.

        Raises:
            NoAddress: No such replica is known.
        """
        if address not in self._addresses:
            raise NoAddress
        if address not in self._channels:
            self._channels[address] = self._open(address)
        return self._channels[address]

    def also(self, address: Address) -> grpc.aio.Channel:
        """Return the channel to `address`, and add it to the known replicas."""
        if address not in self._addresses:
            self._addresses = (*self._addresses, address)
        return self.at(address)

    def all(self) -> tuple[grpc.aio.Channel, ...]:
        """Return the channels to all replicas."""
        return tuple(self.at(address) for address in self._addresses)

    async def update(self, addresses: Iterable[Address]) -> None:
        """Replace the known replicas; return when calls to the removed ones have ended."""
        self._addresses = tuple(dict.fromkeys(addresses))
        gone = [address for address in self._channels if address not in self._addresses]
        await _close([self._channels.pop(address) for address in gone], LIMITS.drain_s)

    async def close(self) -> None:
        """Close every channel and remove all replicas."""
        channels, self._channels, self._addresses = self._channels, {}, ()
        await _close(channels.values(), None)


def _weight(key: str, address: Address) -> bytes:
    # NUL is in neither, so no two pairs are hashed as the same text.
    return blake2b(f"{key}\0{address}".encode(), digest_size=8).digest()


async def _close(channels: Iterable[grpc.aio.Channel], grace_s: float | None) -> None:
    async with asyncio.TaskGroup() as tasks:
        for channel in channels:
            tasks.create_task(channel.close(grace_s))
