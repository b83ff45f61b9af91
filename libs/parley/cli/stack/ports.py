"""TCP addresses: parsing `HOST:PORT`, and finding free ports."""

import secrets
import socket
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from parley.cli.errors import ConfigurationProblem

PORT_MAX = 65535
PORT_FREE_MIN = 10_240
#: The kernel's range of ephemeral ports, and its default.
CONNECTIONS_FILE = Path("/proc/sys/net/ipv4/ip_local_port_range")
CONNECTIONS_BEGIN = 32_768
TRIES = 100


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host and a TCP port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, name: str = "--http", *, port_min: int = 1) -> "HostPort":
        """Read `HOST:PORT`, `[IPv6]:PORT`, or a bare port on loopback.

        Args:
            text: The text.
            name: The option or variable it comes from.
            port_min: The lowest port.

        Raises:
            ConfigurationProblem: `text` has none of these forms.
        """
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not port.isascii() or not port.isdigit() or not port_min <= int(port) <= PORT_MAX:
            raise ConfigurationProblem(
                f"{name} {text} is no address: write HOST:PORT, for example 127.0.0.1:8787"
            )
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Return the address as a URL for a browser on this machine."""
        reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)
        return f"http://{HostPort(reachable, self.port)}"

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine can reach the address."""
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def refusal(where: HostPort) -> str | None:
    """Return why `where` cannot be bound, or None when it is free."""
    try:
        with _listening(where):
            return None
    except OSError as error:
        return error.strerror or str(error)


def free_ports_after(
    first: HostPort, count: int, used: Collection[HostPort] = ()
) -> tuple[HostPort, ...]:
    """Return `count` free addresses on the host of `first`, on the ports that follow it.

    Those in `used` are skipped, although nothing listens there yet.
    """
    found: list[HostPort] = []
    port = first.port
    while len(found) < count:
        port += 1
        if port > PORT_MAX:
            raise ConfigurationProblem(f"no {count} free ports follow {first}: choose a lower one")
        next_one = HostPort(first.host, port)
        if next_one not in used and refusal(next_one) is None:
            found.append(next_one)
    return tuple(found)


def any_free_port(host: str) -> HostPort:
    """Return an address on `host` that is free and stays so until it is bound.

    It is below the ephemeral ports of the kernel: one of those is free only until another program
    makes a connection.
    """
    begin = CONNECTIONS_BEGIN
    with suppress(OSError):
        begin = int(CONNECTIONS_FILE.read_text().split()[0])
    for _ in range(TRIES if begin > PORT_FREE_MIN else 0):
        chosen = HostPort(host, PORT_FREE_MIN + secrets.randbelow(begin - PORT_FREE_MIN))
        if refusal(chosen) is None:
            return chosen
    with _listening(HostPort(host, 0)) as listener:
        return HostPort(host, listener.getsockname()[1])


def _listening(where: HostPort) -> socket.socket:
    family, _, _, _, address = socket.getaddrinfo(
        where.host, where.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1)
    except OSError:
        listener.close()
        raise
    return listener
