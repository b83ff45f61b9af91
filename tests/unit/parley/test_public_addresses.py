from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.public_addresses import is_public


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1"),
        *("100.100.100.200", "0.0.0.0", "224.0.0.1", "255.255.255.255", "168.63.129.16"),
        *("192.0.0.192", "198.18.0.1", "203.0.113.1", "::1", "::", "fe80::1%eth0", "fe80::1"),
        *("fc00::1", "fd00:ec2::254", "ff02::1", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "fec0::1"),
        *("192.88.99.1", "not an address", "64:ff9b::808:808", "2002:808:808::1"),
        *("64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::1", "2001::1", "::8.8.8.8"),
    ],
)
def test_addresses_that_lead_inside_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_no_private_address_is_public(address: IPv4Address | IPv6Address) -> None:
    is_inside = address.is_private or address.is_loopback or address.is_link_local

    assert not (is_public(str(address)) and (is_inside or address.is_multicast))
