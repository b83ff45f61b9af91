"""The bus of a simulation: notices are lost, repeated and overtake each other."""

import random  # noqa: TID251 (only the type; chance is an argument)
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from parley.bus import Notice
from parley.bus.port import BusItem
from parley.bus.subscription import Subscriptions
from support.simulation.loop import Host
from support.simulation.network import Network


class SimulatedBus:
    """What connects the buses of all processes."""

    def __init__(self, network: Network, rng: random.Random) -> None:
        self.lines: dict[Host, Subscriptions] = {}
        self.lost = 0.0
        self._network = network
        self._rng = rng

    def send(self, notice: Notice) -> None:
        """Carry a notice to every process, each in its own time."""
        for host, line in self.lines.items():
            copies = self._rng.choice((1, 1, 1, 2)) if self.lost else 1
            for _ in range(copies):
                if self._rng.random() >= self.lost:
                    arrive = partial(_arrive, host, line, notice)
                    self._network.later(self._network.delay_s(), arrive)


def _arrive(host: Host, line: Subscriptions, notice: Notice) -> None:
    if not host.is_dead:
        line.deliver((notice,))


class ConnectedBus:
    """The bus as one process knows it."""

    def __init__(self, bus: SimulatedBus, host: Host) -> None:
        self._bus = bus
        self._host = host
        self._subscriptions = Subscriptions()
        bus.lines[host] = self._subscriptions

    def publish(self, *notices: Notice) -> None:
        """Send notices, unless this process is dead."""
        if not self._host.is_dead:
            for notice in notices:
                self._bus.send(notice)

    @asynccontextmanager
    async def subscribe(self, topic: str) -> AsyncIterator[AsyncIterator[BusItem]]:
        """Hear all notices of a topic while the context is open."""
        with self._subscriptions.open(topic) as subscription:
            yield subscription
