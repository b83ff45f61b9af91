"""Hosts in requests and policies, in canonical form; ambiguous spellings are refused."""

import re
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import Final, Self

from toolrunner.egress.domain.errors import PolicyInvalid

HOST_CHARACTERS_MAX: Final = 253
PORT_MAX: Final = 65535
LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?", re.ASCII)
NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
PORT: Final = re.compile(r"[1-9][0-9]{0,4}", re.ASCII)
RAW: Final = "tcp://"


@dataclass(frozen=True, slots=True)
class HostPort:
    """A host and a port.

    Attributes:
        host: A name in lower case, or an address in its canonical form without brackets.
        port: The port.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, *, default_port: int = 0) -> Self:
        """Parse `host:port`; the port may be omitted if there is a default.

        Raises:
            ValueError: It is not exactly that.
        """
        host, port = _split(text)
        if not port and not default_port:
            raise ValueError("names no port")
        return cls(canonical_host(host), port_of(port) if port else default_port)

    @property
    def is_address(self) -> bool:
        """Whether the host is an address rather than a name."""
        return ":" in self.host or NUMBER.fullmatch(self.host.rpartition(".")[2]) is not None

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HostPattern:
    """A pattern of hosts and ports.

    Attributes:
        host: The host, or the domain of a wildcard.
        is_wildcard: Whether it matches every name below `host`, and not `host` itself.
        port: The port; None for the default ports.
        is_raw: Whether any protocol is allowed, not only TLS and HTTP.
    """

    host: str
    is_wildcard: bool = False
    port: int | None = None
    is_raw: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `host`, `host:port`, `*.host`, `*.host:port` or `tcp://host:port`.

        Raises:
            PolicyInvalid: It is none of these.
        """
        is_raw = text.startswith(RAW)
        rest = text.removeprefix(RAW)
        is_wildcard = rest.startswith("*.")
        try:
            host, port = _split(rest.removeprefix("*."))
            canonical = canonical_host(host)
            number = port_of(port) if port else None
        except ValueError as error:
            raise PolicyInvalid(text, f"is no host pattern: it {error}") from None
        if is_raw and number is None:
            raise PolicyInvalid(text, "names no port; write tcp://HOST:PORT")
        if is_wildcard and ("." not in canonical or HostPort(canonical, 1).is_address):
            raise PolicyInvalid(text, "is too wide; name a domain of at least two parts")
        return cls(canonical, is_wildcard, number, is_raw)

    def meets(self, host: str) -> bool:
        """Return whether a canonical host matches."""
        return host.endswith(f".{self.host}") if self.is_wildcard else host == self.host

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        wildcard = "*." if self.is_wildcard else ""
        port = "" if self.port is None else f":{self.port}"
        return f"{RAW if self.is_raw else ''}{wildcard}{host}{port}"


def canonical_host(text: str) -> str:
    """Return a host in canonical form.

    Raises:
        ValueError: It has invalid characters or a trailing dot, is an address in an ambiguous form,
            or is too long.
    """
    if text.startswith("[") and text.endswith("]"):
        return _canonical_six(text[1:-1])
    name = text.lower()
    if not text.isascii() or not name or len(name) > HOST_CHARACTERS_MAX:
        raise ValueError("holds no host name in ASCII of at most 253 characters")
    labels = name.split(".")
    if not all(LABEL.fullmatch(label) for label in labels):
        raise ValueError("holds a host name with odd characters, an empty part or a dot at the end")
    if NUMBER.fullmatch(labels[-1]):
        try:
            return str(IPv4Address(name))
        except AddressValueError:
            raise ValueError("holds an address that is not in its usual form") from None
    return name


def port_of(text: str) -> int:
    """Return a port.

    Raises:
        ValueError: It is not a valid port.
    """
    if not PORT.fullmatch(text) or int(text) > PORT_MAX:
        raise ValueError("holds no port from 1 to 65535")
    return int(text)


def _canonical_six(text: str) -> str:
    try:
        six = IPv6Address(text)
    except AddressValueError:
        raise ValueError("holds no IPv6 address in its brackets") from None
    if six.scope_id is not None:
        raise ValueError("holds an address with a zone")
    return str(six)


def _split(text: str) -> tuple[str, str]:
    """Return host and port as they were written; the port is empty if there is none."""
    if text.startswith("["):
        host, bracket, rest = text.partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError("holds a bracket without its other half")
        port = rest[1:]
        host += bracket
    else:
        host, colon, port = text.partition(":")
        rest = colon
    if rest and not port:
        raise ValueError("holds a colon without a port")
    return host, port
