"""Outgoing connections: the name is resolved, its addresses checked, and one of them connected."""

import asyncio
import socket
import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Protocol

from toolrunner.egress.domain.errors import Reason, Refused
from toolrunner.egress.domain.hosts import HostPort
from toolrunner.egress.domain.policy import Policy

READ_BYTES = 64 * 1024


class Network(Protocol):
    """The network of the node."""

    async def resolve(self, host_port: HostPort) -> tuple[str, ...]:
        """Return the addresses of a target, best first.

        Raises:
            OSError: There are none.
        """
        ...

    async def connect(self, address: str, port: int) -> socket.socket:
        """Return a connection to an address.

        Raises:
            OSError: It cannot be connected.
        """
        ...


class SystemNetwork:
    """The real network of the node."""

    async def resolve(self, host_port: HostPort) -> tuple[str, ...]:
        """Call the node's resolver."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host_port.host, host_port.port, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(str(entry[4][0]) for entry in found))

    async def connect(self, address: str, port: int) -> socket.socket:
        """Connect, and check that the peer has that address."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        try:
            await asyncio.get_running_loop().sock_connect(connection, (address, port))
            if ip_address(connection.getpeername()[0]) != ip_address(address):
                raise ConnectionAbortedError("the connection is to another address")
        except BaseException:
            connection.close()
            raise
        return connection


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection to a target.

    Attributes:
        address: The address of the peer.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str


@dataclass(frozen=True, slots=True)
class Dialer:
    """Makes connections.

    Attributes:
        network: The network to use.
        trust: The trusted certificate authorities.
    """

    network: Network
    trust: ssl.SSLContext

    async def dial(
        self, host_port: HostPort, policy: Policy, *, is_secured: bool = False, limit_s: float
    ) -> Connection:
        """Connect to a target, over TLS if `is_secured`.

        Raises:
            Refused: Its address is not allowed, or it cannot be connected.
        """
        try:
            async with asyncio.timeout(limit_s):
                addresses = await self._resolved(host_port)
                policy.check_addresses(host_port, addresses)
                return await self._connected(host_port, addresses, is_secured=is_secured)
        except TimeoutError:
            raise Refused(Reason.UNREACHABLE, f"{host_port} does not answer in time.") from None

    async def _resolved(self, host_port: HostPort) -> tuple[str, ...]:
        try:
            addresses = await self.network.resolve(host_port)
        except (OSError, UnicodeError):
            addresses = ()
        if not addresses:
            raise Refused(Reason.UNRESOLVED, f"{host_port.host} has no address.")
        return addresses

    async def _connected(
        self, host_port: HostPort, addresses: tuple[str, ...], *, is_secured: bool
    ) -> Connection:
        for address in addresses:
            try:
                connection = await self.network.connect(address, host_port.port)
            except OSError:
                continue
            reader, writer = await self._opened(host_port, connection, is_secured=is_secured)
            return Connection(reader, writer, address)
        raise Refused(Reason.UNREACHABLE, f"{host_port} takes no connection.")

    async def _opened(
        self, host_port: HostPort, connection: socket.socket, *, is_secured: bool
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            return await asyncio.open_connection(
                sock=connection,
                limit=READ_BYTES,
                ssl=self.trust if is_secured else None,
                server_hostname=host_port.host if is_secured else None,
            )
        except ssl.SSLError as error:
            problem = f"{host_port} offers no TLS that can be trusted ({error.reason})."
            raise Refused(Reason.UNTRUSTED, problem) from None
        except OSError:
            raise Refused(Reason.UNREACHABLE, f"{host_port} closed the connection.") from None
        except BaseException:
            connection.close()
            raise
