"""Which places may be reached."""

import pytest

from mcpgateway.client.egress import AddressBlocked, Policy, is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::1",
        "2001::1",
    ],
)
def test_addresses_that_lead_inside_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700:4700::1111"])
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


def test_plain_http_is_refused() -> None:
    with pytest.raises(AddressBlocked):
        Policy().check_request("http", "mcp.example", None)


def test_https_to_a_public_address_passes() -> None:
    policy = Policy()

    policy.check_request("https", "mcp.example", None)
    policy.check_addresses("mcp.example", 443, ["8.8.8.8"])


def test_one_private_address_among_public_ones_is_refused() -> None:
    with pytest.raises(AddressBlocked):
        Policy().check_addresses("mcp.example", 443, ["8.8.8.8", "127.0.0.1"])


def test_a_place_named_exactly_may_be_private_and_plain() -> None:
    policy = Policy.parse("LOCALHOST:8000, [::1]:9000")

    policy.check_request("http", "localhost", 8000)
    policy.check_addresses("localhost", 8000, ["127.0.0.1"])
    policy.check_addresses("::1", 9000, ["::1"])


def test_another_port_of_an_allowed_host_is_refused() -> None:
    policy = Policy.parse("localhost:8000")

    with pytest.raises(AddressBlocked):
        policy.check_request("http", "localhost", 8001)
    with pytest.raises(AddressBlocked):
        policy.check_addresses("localhost", 443, ["127.0.0.1"])


def test_a_url_can_be_allowed() -> None:
    assert Policy().with_url("http://Localhost/mcp") == Policy(frozenset({"localhost:80"}))


@pytest.mark.parametrize("text", ["localhost", "localhost:", ":80", "a:b", "a:70000"])
def test_what_is_not_a_place_is_a_problem(text: str) -> None:
    with pytest.raises(ValueError, match="HOST:PORT"):
        Policy.parse(text)
