import pytest

from gateway.http.limits.client_address import ClientAddresses, ProxyNetwork

PROXIES = tuple(map(ProxyNetwork.parse, ("10.0.0.0/8", "192.0.2.7", "2001:db8:1::/48")))


@pytest.mark.parametrize(
    ("peer", "forwarded", "address"),
    [
        ("198.51.100.1", (), "198.51.100.1"),
        # From anyone else the header is ignored.
        ("198.51.100.1", ("203.0.113.9",), "198.51.100.1"),
        ("10.0.0.1", (), "10.0.0.1"),
        ("10.0.0.1", ("203.0.113.9",), "203.0.113.9"),
        # What a client made up is left of what the proxies added.
        ("10.0.0.1", ("1.1.1.1, 203.0.113.9",), "203.0.113.9"),
        ("10.0.0.1", ("1.1.1.1, 203.0.113.9, 192.0.2.7",), "203.0.113.9"),
        ("10.0.0.1", ("1.1.1.1", "203.0.113.9", "192.0.2.7"), "203.0.113.9"),
        ("10.0.0.1", ("203.0.113.9:4711",), "203.0.113.9"),
        ("10.0.0.1", ("nonsense, 192.0.2.7",), "192.0.2.7"),
        ("10.0.0.1", ("10.0.0.3, 10.0.0.2",), "10.0.0.3"),
        ("::ffff:10.0.0.1", ("203.0.113.9",), "203.0.113.9"),
        ("2001:db8:1::5", ("[2001:db8:77:1:2:3:4:5]:443",), "2001:db8:77:1::/64"),
        ("2001:db8:77:1:9:9:9:9", (), "2001:db8:77:1::/64"),
        ("", ("203.0.113.9",), "unknown"),
    ],
)
def test_a_client_is_counted_by_its_address(
    peer: str, forwarded: tuple[str, ...], address: str
) -> None:
    assert ClientAddresses(PROXIES).of(peer, forwarded) == address


def test_only_named_proxies_are_proxies() -> None:
    addresses = ClientAddresses(PROXIES)
    peers = ("10.9.9.9", "192.0.2.7", "192.0.2.8", "::ffff:10.0.0.1", "2001:db8:2::1", "")
    assert [each for each in peers if addresses.is_proxy(each)] == [
        "10.9.9.9",
        "192.0.2.7",
        "::ffff:10.0.0.1",
    ]


@pytest.mark.parametrize("text", ["proxy.test", "10.0.0.1/8", "300.1.1.1"])
def test_what_is_no_network_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no address and no network"):
        ProxyNetwork.parse(text)
