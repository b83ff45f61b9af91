"""Watches which chatd processes exist, and which of them accept new streams."""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import NoReturn

import grpc

from parley.api.chat.v1 import stream_service_pb2 as api
from parley.api.chat.v1.stream_service_pb2_grpc import StreamServiceStub
from parley.clock import Clock
from parley.rpc import Address, AddressInvalid, Channels, NoAddress

RETRY_S = 2.0

_log = logging.getLogger(__name__)


class ReplicaWatch:
    """Caches the list of processes that one of them streams; its owner runs `run`.

    The addresses from the settings are kept: they are used for the first connection, and for the
    next one when the current process becomes unavailable.
    """

    def __init__(
        self, channels: Channels, *, clock: Clock, changed: Callable[[], Awaitable[None]]
    ) -> None:
        """Watch through the addresses of `channels`.

        Args:
            channels: The channels to the processes; new addresses are added to it.
            clock: The clock.
            changed: Called when the set of processes that accept new streams changed.
        """
        self._channels = channels
        self._clock = clock
        self._changed = changed
        self._seeds = channels.addresses
        self._live: frozenset[Address] | None = None

    def is_live(self, address: Address) -> bool:
        """Return whether a process is live and not draining, as far as known."""
        return self._live is None or address in self._live

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        for turn in itertools.count():
            try:
                await self._follow(turn)
            except (grpc.aio.AioRpcError, NoAddress) as error:
                _log.info("the list of chatd processes is followed anew: %s", error)
            self._live = None
            await self._clock.sleep(RETRY_S)
        raise AssertionError("unreachable")

    async def _follow(self, turn: int) -> None:
        addresses = self._channels.addresses
        if not addresses:
            raise NoAddress
        stub = StreamServiceStub(self._channels.at(addresses[turn % len(addresses)]))
        call = stub.WatchReplicas(api.WatchReplicasRequest())
        try:
            async for response in call:
                await self._know(response)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
        finally:
            call.cancel()

    async def _know(self, response: api.WatchReplicasResponse) -> None:
        found: dict[Address, bool] = {}
        for each in response.replicas:
            try:
                found[Address.parse(each.address)] = each.draining
            except AddressInvalid as error:
                _log.warning("a chatd has an address that cannot be used: %s", error)
        before = self._live
        self._live = frozenset(address for address, is_draining in found.items() if not is_draining)
        await self._channels.update((*self._seeds, *found))
        if self._live != before:
            await self._changed()
