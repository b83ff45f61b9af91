"""Which places may be reached."""

import pytest

from mcpgateway.client.egress_policy import AddressBlocked, Policy


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


@pytest.mark.parametrize("address", ["168.63.129.16", "fec0::1", "192.0.0.192", "192.88.99.1"])
def test_services_of_clouds_and_site_local_addresses_are_refused(address: str) -> None:
    with pytest.raises(AddressBlocked):
        Policy().check_addresses("mcp.example", 443, [address])


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
