"""The client address of a request, also behind trusted proxies."""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, Self

#: One customer of a network provider usually has all addresses of such a network.
IPV6_PREFIX: Final = 64
UNKNOWN: Final = "unknown"

Ip = IPv4Address | IPv6Address


@dataclass(frozen=True, slots=True)
class ProxyNetwork:
    """An address or a network of proxies whose X-Forwarded-For is trusted."""

    network: IPv4Network | IPv6Network

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse an address or a network such as "10.0.0.0/8".

        Raises:
            ValueError: `text` is neither.
        """
        try:
            return cls(ip_network(text))
        except ValueError:
            raise ValueError(f"{text!r} is no address and no network such as 10.0.0.0/8") from None

    def __str__(self) -> str:
        return str(self.network)


class ClientAddresses:
    """Determines the client address of requests.

    Args:
        trusted: The proxies whose X-Forwarded-For is used; from other peers it is ignored.
    """

    def __init__(self, trusted: Iterable[ProxyNetwork] = ()) -> None:
        self._trusted = tuple(each.network for each in trusted)

    def is_proxy(self, peer: str) -> bool:
        """Return whether the peer of a connection is a trusted proxy."""
        if not self._trusted:
            return False
        address = _parsed(peer)
        return address is not None and self._is_trusted(address)

    def of(self, peer: str, forwarded: Iterable[str]) -> str:
        """Return the key by which a client is counted.

        Each proxy appends the address of its peer, so that the right-most one which is not a
        trusted proxy is the client; the addresses left of it may be forged by the client.

        Args:
            peer: The peer of the connection.
            forwarded: The values of X-Forwarded-For, in their order.
        """
        address = _parsed(peer)
        if address is None:
            return UNKNOWN
        for text in reversed([each for value in forwarded for each in value.split(",")]):
            if not self._is_trusted(address):
                break
            parsed = _parsed(text.strip())
            if parsed is None:
                break
            address = parsed
        return address_key(address)

    def _is_trusted(self, address: Ip) -> bool:
        return any(address in network for network in self._trusted)


def address_key(address: Ip) -> str:
    """Return the key of an address: all addresses of one IPv6 network are one client."""
    if isinstance(address, IPv4Address):
        return str(address)
    return str(IPv6Network((address, IPV6_PREFIX), strict=False))


def _parsed(text: str) -> Ip | None:
    """Parse an address, which some proxies write with a port or in brackets."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
