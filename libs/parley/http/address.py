"""Addresses: scheme, host and port of a URL, and the path to request."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from parley.http.errors import AddressInvalid

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Where to connect to; connections to equal addresses are interchangeable.

    Attributes:
        is_secure: Whether TLS is used.
        host: A DNS name or an IP address.
        port: The TCP port.
    """

    is_secure: bool
    host: str
    port: int

    @classmethod
    def read(cls, url: str) -> tuple[Self, str]:
        """Return the address of a URL, and its path with the query, unchanged.

        Raises:
            AddressInvalid: it is not an HTTP URL; the message says why, without repeating it.
        """
        try:
            split = urlsplit(url)
            port = split.port or PORTS.get(split.scheme, 0)
        except ValueError:
            raise AddressInvalid("is no URL") from None
        if split.scheme not in PORTS or not split.hostname:
            raise AddressInvalid("is no URL that begins with http:// or https:// and a host")
        if split.username is not None or split.password is not None:
            raise AddressInvalid("holds a user's name or password; keys have a place of their own")
        path = split.path or "/"
        target = f"{path}?{split.query}" if split.query else path
        if not target.isascii() or not target.isprintable() or " " in target:
            raise AddressInvalid("holds characters that must be written as % and their number")
        try:
            host = split.hostname.encode("idna").decode() if ":" not in split.hostname else ""
        except UnicodeError:
            raise AddressInvalid("holds a host that is no name") from None
        return cls(split.scheme == "https", host or split.hostname, port), target

    @property
    def origin(self) -> str:
        """Return scheme, host and port, as `https://host:443`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.is_secure else 'http'}://{host}:{self.port}"

    @property
    def authority(self) -> str:
        """Return the value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_usual = self.port == PORTS["https" if self.is_secure else "http"]
        return host if is_usual else f"{host}:{self.port}"
