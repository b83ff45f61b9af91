"""Fakes of the ports of the egress proxy: network, secrets and access log."""

import asyncio
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from toolrunner.egress.access_log import ProxyAccessRecord
from toolrunner.egress.dialer import SystemNetwork
from toolrunner.egress.domain.errors import SecretUnavailable
from toolrunner.egress.domain.grants import SecretUse, SecretValue
from toolrunner.egress.domain.hosts import HostPort


@dataclass(slots=True)
class InMemoryAccessLog:
    """Keeps the records in memory, for tests.

    Attributes:
        access_records: The records.
        changed: Set with each record.
    """

    access_records: list[ProxyAccessRecord] = field(default_factory=list)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def note(self, record: ProxyAccessRecord) -> None:
        """Append it."""
        self.access_records.append(record)
        self.changed.set()


@dataclass(slots=True)
class FakeNetwork:
    """A network for tests: with its own names, and public addresses mapped to local ports.

    Attributes:
        answers: For each host the results of successive resolutions; the last one is repeated.
        routes: Ports on loopback, by the address and port that they stand for.
        connected: Every connection that was made.
    """

    answers: Mapping[str, list[tuple[str, ...]]]
    routes: Mapping[tuple[str, int], int] = field(default_factory=dict)
    connected: list[tuple[str, int]] = field(default_factory=list)

    async def resolve(self, host_port: HostPort) -> tuple[str, ...]:
        """Return the next answer."""
        if host_port.is_address:
            return (host_port.host,)
        if host_port.host not in self.answers:
            raise OSError("no such name")
        left = self.answers[host_port.host]
        return left.pop(0) if len(left) > 1 else left[0]

    async def connect(self, address: str, port: int) -> socket.socket:
        """Connect to the mapped port, or to an address of this machine."""
        self.connected.append((address, port))
        there = (
            ("127.0.0.1", self.routes[address, port])
            if (address, port) in self.routes
            else (
                address,
                port,
            )
        )
        if there[0] == address and not ip_address(address).is_loopback:
            raise ConnectionRefusedError("there is no such address in the test")
        return await SystemNetwork().connect(*there)


@dataclass(slots=True)
class FakeSecrets:
    """Secrets for tests.

    Attributes:
        values: By name.
        uses: Every use that was requested.
    """

    values: Mapping[str, SecretValue]
    uses: list[SecretUse] = field(default_factory=list)

    async def use(self, use: SecretUse) -> SecretValue:
        """Return the value and record the use.

        Raises:
            SecretUnavailable: There is none of this name.
        """
        self.uses.append(use)
        if use.name not in self.values:
            raise SecretUnavailable(use.name, "it is not granted to this workspace any more")
        return self.values[use.name]
