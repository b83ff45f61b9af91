"""Addresses: whom a URL means, and what to ask there."""

from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from parley.http.errors import AddressInvalid

PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Address:
    """Whom to connect to; connections to equal addresses can stand in for one another.

    Attributes:
        is_secure: Whether TLS is spoken.
        host: A name as DNS writes it, or a number.
        port: Where it listens.
    """

    is_secure: bool
    host: str
    port: int

    @classmethod
    def read(cls, url: str) -> tuple[Self, str]:
        """Return whom a URL means, and the path to ask for, with its query and as it stands.

        Raises:
            AddressInvalid: it is no URL of HTTP; says why, without repeating it.
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
    def authority(self) -> str:
        """Return what the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_usual = self.port == PORTS["https" if self.is_secure else "http"]
        return host if is_usual else f"{host}:{self.port}"
