"""Addresses at which a service listens and is reached."""

import re
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Self

from parley.rpc.errors import AddressInvalid

# sockaddr_un holds 108 bytes, one of them the terminating zero.
UNIX_PATH_BYTES_MAX = 107
RANGE_MAX = 256

# No host name contains two consecutive dots.
_RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})")


class Scheme(StrEnum):
    """The transport of an address."""

    UNIX = "unix"
    TCP = "tcp"
    TLS = "tls"


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a gRPC server.

    Attributes:
        scheme: The transport.
        place: An absolute socket path, or HOST:PORT with an IPv6 host in brackets.
    """

    scheme: Scheme
    place: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read "unix:/path.sock", "tcp:host:port" or "tls:host:port".

        Raises:
            AddressInvalid: The text has none of these forms.
        """
        name, colon, place = text.strip().partition(":")
        if not colon or name not in tuple(Scheme):
            raise AddressInvalid(text, "the scheme is not unix, tcp or tls")
        scheme = Scheme(name)
        problem = _path_problem(place) if scheme is Scheme.UNIX else _host_problem(place)
        if problem is not None:
            raise AddressInvalid(text, problem)
        return cls(scheme, place)

    @classmethod
    def expanded(cls, text: str) -> tuple[str, ...]:
        """Return the addresses of an entry with a range: "tls:name-1..3:7002" means three.

        Raises:
            AddressInvalid: The range is malformed, or has more than 256 numbers.
        """
        found = _RANGE.search(text)
        if found is None or text.startswith(Scheme.UNIX):
            return (text,)
        first, last = int(found[1]), int(found[2])
        if not first <= last < first + RANGE_MAX:
            raise AddressInvalid(text, f"the range is not of 1 to {RANGE_MAX} growing numbers")
        before, after = text[: found.start()], text[found.end() :]
        return tuple(f"{before}{number}{after}" for number in range(first, last + 1))

    @property
    def host(self) -> str:
        """The host without brackets; empty for a socket path."""
        return "" if self.scheme is Scheme.UNIX else self.place.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port; 0 for a socket path, or when the system is to choose one."""
        return 0 if self.scheme is Scheme.UNIX else int(self.place.rpartition(":")[2])

    @property
    def target(self) -> str:
        """The address in the syntax of grpc."""
        return f"unix:{self.place}" if self.scheme is Scheme.UNIX else self.place

    @property
    def is_local(self) -> bool:
        """Whether the traffic stays on this machine."""
        if self.scheme is Scheme.UNIX or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def with_port(self, port: int) -> "Address":
        """Return the same host with the port that was bound."""
        return Address(self.scheme, f"{self.place.rpartition(':')[0]}:{port}")

    def __str__(self) -> str:
        return f"{self.scheme}:{self.place}"


def _path_problem(path: str) -> str | None:
    if not path.startswith("/") or path.endswith("/"):
        return "the socket path is not absolute"
    if "\0" in path:
        return "the socket path holds a NUL"
    if len(path.encode()) > UNIX_PATH_BYTES_MAX:
        return f"the socket path is longer than {UNIX_PATH_BYTES_MAX} bytes"
    return None


def _host_problem(place: str) -> str | None:
    host, colon, port = place.rpartition(":")
    if not colon or not host:
        return "the host or the port is missing"
    if ":" in host and not (host.startswith("[") and host.endswith("]")):
        return "an IPv6 host needs brackets"
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        return "the port is not a number from 0 to 65535"
    if any(character.isspace() or character == "/" for character in host):
        return "the host holds a character no host has"
    return None
