"""The egress policy: HTTP only to public addresses over TLS, and to others that are allowed.

An operator allows places by three kinds of rules: `HOST:PORT` exactly, `.SUFFIX` for all hosts
below a domain, and a CIDR for addresses. Link-local addresses and others where clouds keep
credentials need a rule of their own: a name that is allowed may come to resolve to them. Ports of
databases and the like need an exact rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from typing import Final, Self
from urllib.parse import urlsplit

import httpx2

from parley.public_addresses import is_public

DEFAULT_PORTS: Final = {"http": 80, "https": 443}
LINK_LOCAL: Final = (ip_network("169.254.0.0/16"), ip_network("fe80::/10"))
#: Services of the host inside of clouds at addresses that are not link-local.
OF_CLOUDS: Final = (ip_network("168.63.129.16/32"), ip_network("fd00:ec2::/32"))
#: Ports from 1024 on where other protocols are spoken than HTTP.
DENIED_PORTS: Final = frozenset(
    {1433, 1521, 2049, 2375, 2376, 2379, 2380, 3306, 3389, 5432, 5672, 5900, 6379, 6443, 9042, 9092}
    | {9200, 9300, 10250, 11211, 27017}
)

Network = IPv4Network | IPv6Network


class AddressBlocked(httpx2.TransportError):
    """The policy does not allow the address, the scheme or the port.

    Attributes:
        host_port: The host and port.
    """

    def __init__(self, host_port: str, problem: str, setting_name: str = "") -> None:
        remedy = f"; the operator can name it in {setting_name}" if setting_name else ""
        super().__init__(f"{host_port} {problem}{remedy}")
        self.host_port = host_port


@dataclass(frozen=True, slots=True)
class Policy:
    """The places that may be reached besides public ones over TLS.

    Attributes:
        allowed: Exact host:port texts in lower case.
        suffixes: Domains with a leading dot whose hosts may be private or plain HTTP.
        networks: Addresses that may be private or plain HTTP.
        setting_name: The setting that an operator adds places to; refusals name it.
    """

    allowed: frozenset[str] = frozenset()
    suffixes: frozenset[str] = frozenset()
    networks: frozenset[Network] = frozenset()
    setting_name: str = field(default="", compare=False)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse comma-separated rules: HOST:PORT, .SUFFIX or a CIDR.

        Raises:
            ValueError: One of them is none of these.
        """
        allowed, suffixes, networks = set(), set(), set[Network]()
        for rule in (part.strip().lower() for part in text.split(",") if part.strip()):
            host, _, port = rule.rpartition(":")
            if "/" in rule:
                networks.add(_network(rule))
            elif rule.startswith(".") and ":" not in rule and len(rule) > 1:
                suffixes.add(rule)
            elif host and port.isascii() and port.isdigit() and 0 < int(port) < 65536:
                allowed.add(rule)
            else:
                raise ValueError(f"{rule!r} is not HOST:PORT, .SUFFIX or a CIDR")
        return cls(frozenset(allowed), frozenset(suffixes), frozenset(networks))

    def __str__(self) -> str:
        return ",".join(sorted((*self.allowed, *self.suffixes, *map(str, self.networks))))

    def with_url(self, url: str) -> "Policy":
        """Return a policy that also allows the host and port of `url`."""
        parts = urlsplit(url)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme, 0)
        allowed = self.allowed | {_host_port(parts.hostname or "", port)}
        return replace(self, allowed=allowed)

    def named(self, setting_name: str) -> "Policy":
        """Return the policy with the name of the setting that it comes from."""
        return replace(self, setting_name=setting_name)

    def check_request(self, scheme: str, host: str, port: int | None) -> None:
        """Reject ports of other protocols, and plain HTTP to a host that no rule names.

        Raises:
            AddressBlocked: The request must not be sent.
        """
        number = port or DEFAULT_PORTS.get(scheme, 0)
        host_port = _host_port(host, number)
        if host_port in self.allowed:
            return
        if number in DENIED_PORTS or (number < 1024 and number not in DEFAULT_PORTS.values()):
            raise self._refusal(host_port, "is a port of another protocol")
        if scheme != "https" and not self._names(host):
            raise self._refusal(host_port, "is reached by plain HTTP")

    def check_addresses(self, host: str, port: int, addresses: Iterable[str]) -> None:
        """Reject a host that resolves to an address which is neither public nor allowed.

        Raises:
            AddressBlocked: The connection must not be opened.
        """
        is_named = _host_port(host, port) in self.allowed or self._has_suffix(host)
        for address in addresses:
            # A name allows what it resolves to; only an address allows where credentials are.
            if is_named and (address == host or not _has_credentials(address)):
                continue
            if not is_public(address) and not self._covers(address):
                raise self._refusal(_host_port(host, port), "is not a public address")

    def _refusal(self, host_port: str, problem: str) -> AddressBlocked:
        return AddressBlocked(host_port, problem, self.setting_name)

    def _names(self, host: str) -> bool:
        """Return whether a rule names the host, or the address that it is written as."""
        literal = "127.0.0.1" if host.lower() == "localhost" else host.strip("[]")
        return self._has_suffix(host) or self._covers(literal)

    def _has_suffix(self, host: str) -> bool:
        return any(host.lower().endswith(suffix) for suffix in self.suffixes)

    def _covers(self, text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        is_link_local = any(address in network for network in LINK_LOCAL)
        return any(
            address in network
            and (not is_link_local or any(_is_inside(network, each) for each in LINK_LOCAL))
            for network in self.networks
        )


def _has_credentials(text: str) -> bool:
    """Return whether an address is link-local or of a cloud's services, in whatever notation."""
    try:
        address: IPv4Address | IPv6Address = ip_address(text)
    except ValueError:
        return True
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in (*LINK_LOCAL, *OF_CLOUDS))


def _network(rule: str) -> Network:
    try:
        return ip_network(rule)
    except ValueError as error:
        raise ValueError(f"{rule!r} is not a CIDR: {error}") from None


def _is_inside(network: Network, outer: Network) -> bool:
    if isinstance(network, IPv4Network) and isinstance(outer, IPv4Network):
        return network.subnet_of(outer)
    if isinstance(network, IPv6Network) and isinstance(outer, IPv6Network):
        return network.subnet_of(outer)
    return False


def _host_port(host: str, port: int) -> str:
    bracketed = f"[{host}]" if ":" in host else host
    return f"{bracketed}:{port}".lower()
