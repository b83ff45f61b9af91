"""Addresses at which a service listens and is reached."""

import os
import re
import socket
import stat
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Self

from parley.rpc.errors import AddressInvalid, AddressUnusable

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


def claim_path(address: Address) -> Path:
    """Create the socket's directory and remove a socket on which no process listens.

    Raises:
        AddressUnusable: Others can access the directory, or the path is in use.
    """
    path = Path(address.place)
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = path.parent.stat().st_mode
        if mode & 0o077:
            problem = f"{path.parent} is open to others; chmod 700 it or choose another directory"
            raise AddressUnusable(str(address), problem)
        _remove_stale(address, path)
    except OSError as error:
        raise AddressUnusable(str(address), f"{error.strerror}; choose another path") from error
    return path


def close_to_others(path: Path) -> None:
    """Let only the owner connect; until now the mode of the directory kept others out."""
    path.chmod(0o600)


def release_path(address: Address) -> None:
    """Remove the socket file of a server that has stopped."""
    Path(address.place).unlink(missing_ok=True)


def _remove_stale(address: Address, path: Path) -> None:
    try:
        mode = os.lstat(path).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise AddressUnusable(str(address), "the file is not a socket; choose another path")
    # grpc would unlink the socket of a running server and silently replace it.
    if _is_served(path):
        raise AddressUnusable(str(address), "another process serves there; stop it first")
    path.unlink(missing_ok=True)


def _is_served(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        try:
            probe.connect(str(path))
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except BlockingIOError:
            # Its backlog is full, so a process listens.
            return True
    return True
