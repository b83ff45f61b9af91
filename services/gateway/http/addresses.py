"""The HTTP listen address, and the public URL of the installation."""

from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Self
from urllib.parse import urlsplit

DEFAULT_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class HttpAddress:
    """A host and a port to serve HTTP on; port 0 lets the system choose."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "host:port", with an IPv6 host in brackets.

        Raises:
            ValueError: `text` is not of that form.
        """
        host, colon, port = text.rpartition(":")
        is_bracketed = host.startswith("[") and host.endswith("]")
        if not colon or not host or (":" in host and not is_bracketed):
            raise ValueError(f"{text!r} is not HOST:PORT")
        if not (port.isascii() and port.isdigit() and int(port) < 65536):
            raise ValueError(f"the port of {text!r} is not a number from 0 to 65535")
        return cls(host.strip("[]"), int(port))

    @property
    def is_ipv6(self) -> bool:
        """Whether the host is a literal IPv6 address."""
        try:
            return ip_address(self.host).version == 6
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if self.is_ipv6 else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class PublicUrl:
    """The origin of this installation for its clients."""

    scheme: str
    host: str
    port: int | None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse "http://host[:port]" or "https://host[:port]".

        Raises:
            ValueError: `text` is not such an origin.
        """
        parts = urlsplit(text.strip())
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{text!r} does not begin with http:// or https:// and a host")
        if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
            raise ValueError(f"{text!r} is more than scheme, host and port")
        # Browsers leave the usual port out of the origin that they send.
        port = None if parts.port == DEFAULT_PORTS[parts.scheme] else parts.port
        return cls(parts.scheme, parts.hostname, port)

    @property
    def is_https(self) -> bool:
        """Whether it is served over HTTPS."""
        return self.scheme == "https"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port is None else f":{self.port}")
