"""Which places may be reached."""

import pytest

from parley.egress.policy import AddressBlocked, Policy


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
    with pytest.raises(ValueError, match=r"HOST:PORT|CIDR"):
        Policy.parse(text)


def test_ranges_and_domains_can_be_allowed() -> None:
    policy = Policy.parse("10.0.0.0/8, .corp.example, 127.0.0.0/8")

    policy.check_addresses("any.example", 8443, ["10.1.2.3"])
    policy.check_request("http", "10.1.2.3", 8080)
    policy.check_request("http", "localhost", 8080)
    policy.check_request("http", "mcp.corp.example", None)
    policy.check_addresses("mcp.corp.example", 80, ["192.168.1.1"])
    for host in ("evilcorp.example", "corp.example.evil", "192.168.1.1"):
        with pytest.raises(AddressBlocked):
            policy.check_request("http", host, 8080)
    with pytest.raises(AddressBlocked):
        policy.check_addresses("any.example", 443, ["10.1.2.3", "192.168.1.1"])
    assert Policy.parse(str(policy)) == policy


@pytest.mark.parametrize(("rules", "passes"), [("0.0.0.0/0", False), ("169.254.0.0/16", True)])
def test_link_local_addresses_need_a_rule_of_their_own(rules: str, passes: bool) -> None:
    policy = Policy.parse(rules)
    if passes:
        policy.check_addresses("any.example", 443, ["169.254.169.254"])
    else:
        with pytest.raises(AddressBlocked):
            policy.check_addresses("any.example", 443, ["169.254.169.254"])


@pytest.mark.parametrize("rules", [".corp.example", "mcp.corp.example:443"])
@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "fe80::1",
        "fe80::1%eth0",
        "::ffff:169.254.169.254",
        "fd00:ec2::254",
        "168.63.129.16",
    ],
)
def test_a_name_does_not_allow_addresses_where_credentials_are(rules: str, address: str) -> None:
    policy = Policy.parse(rules)

    with pytest.raises(AddressBlocked):
        policy.check_addresses("mcp.corp.example", 443, ["10.0.0.7", address])
    policy.check_addresses("mcp.corp.example", 443, ["10.0.0.7", "::1"])


def test_a_named_host_may_be_link_local_where_a_range_or_the_address_itself_is_allowed() -> None:
    ranged = Policy.parse(".corp.example, 169.254.10.0/24")
    ranged.check_addresses("mcp.corp.example", 443, ["169.254.10.1"])
    with pytest.raises(AddressBlocked):
        ranged.check_addresses("mcp.corp.example", 443, ["169.254.169.254"])

    exact = Policy.parse("169.254.169.254:80, [fe80::1]:80")
    exact.check_addresses("169.254.169.254", 80, ["169.254.169.254"])
    exact.check_addresses("fe80::1", 80, ["fe80::1"])


@pytest.mark.parametrize("port", [22, 25, 5432, 6379, 11211])
def test_ports_of_other_protocols_need_an_exact_rule(port: int) -> None:
    with pytest.raises(AddressBlocked):
        Policy.parse("127.0.0.0/8").check_request("https", "127.0.0.1", port)
    Policy.parse(f"127.0.0.1:{port}").check_request("http", "127.0.0.1", port)


def test_a_refusal_names_the_setting_of_the_service() -> None:
    policy = Policy.parse("localhost:8000").named("CHATD_ALLOWED_HOSTS").with_url("http://a:1/")

    with pytest.raises(AddressBlocked, match="name it in CHATD_ALLOWED_HOSTS"):
        policy.check_request("http", "hooks.example", 8000)
    with pytest.raises(AddressBlocked, match="name it in CHATD_ALLOWED_HOSTS"):
        policy.check_addresses("hooks.example", 443, ["10.0.0.7"])
