"""Which IP addresses are on the public internet; no I/O."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

#: Public addresses that are services of the host inside of clouds.
OF_CLOUDS: Final = frozenset({IPv4Address("168.63.129.16")})
OF_PROTOCOLS: Final = tuple(map(IPv4Network, ("192.0.0.0/24", "192.88.99.0/24", "100.64.0.0/10")))
#: These embed an IPv4 address, which would have to be checked too; no public server needs them.
TUNNELS: Final = tuple(
    map(
        IPv6Network,
        ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32"),
    )
)


def is_public(address: str) -> bool:
    """Return whether a text is an address on the public internet."""
    try:
        parsed = None if "%" in address else ip_address(address)
    except ValueError:
        return False
    match parsed:
        case None:
            return False
        case IPv4Address() as four:
            is_special = four in OF_CLOUDS or any(four in network for network in OF_PROTOCOLS)
            return four.is_global and not four.is_multicast and not is_special
        case IPv6Address() as six:
            is_tunnel = any(six in network for network in TUNNELS)
            is_special = six.is_multicast or six.is_site_local or six.is_reserved
            return six.is_global and not is_special and not is_tunnel
