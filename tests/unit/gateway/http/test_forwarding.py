"""What a proxy says counts if the proxy is trusted, in the form that it is known to write."""

import pytest
from starlette.requests import Request

from gateway.http.forwarding import Client, ForwardedForm, Forwarding
from gateway.http.limits.client_address import ProxyNetwork

PROXIES = (ProxyNetwork.parse("10.0.0.0/8"),)
SENT = (
    ("host", "inside:8080"),
    ("x-forwarded-for", "203.0.113.9, 198.51.100.7"),
    ("x-forwarded-proto", "https"),
    ("x-forwarded-host", "parley.example"),
    ("forwarded", 'for=203.0.113.5;proto=http;host="other.example:1"'),
)


def request(peer: str, *headers: tuple[str, str]) -> Request:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    return Request({"type": "http", "client": (peer, 1), "headers": raw})


def test_a_trusted_proxy_tells_address_scheme_and_host() -> None:
    client = Forwarding(PROXIES).client_of(request("10.0.0.1", *SENT))
    assert client == Client("198.51.100.7", "parley.example", "https")


def test_a_trusted_proxy_that_writes_forwarded_is_heard_in_that_alone() -> None:
    forwarding = Forwarding(PROXIES, ForwardedForm.FORWARDED)
    client = forwarding.client_of(request("10.0.0.1", *SENT))
    assert client == Client("203.0.113.5", "other.example:1", "http")


def test_anybody_else_is_ignored_and_that_is_told() -> None:
    client = Forwarding(PROXIES).client_of(request("198.51.100.7", *SENT))
    ignored = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded")
    assert client == Client("198.51.100.7", "inside:8080", ignored=ignored)


@pytest.mark.parametrize(
    ("value", "address", "host"),
    [
        ("for=203.0.113.5", "203.0.113.5", "inside"),
        ('For="[2001:db8::17]:4711";Host=a.example', "2001:db8::/64", "a.example"),
        ("for=192.0.2.1, for=10.1.1.1;host=a.example", "192.0.2.1", "a.example"),
        ("for=_hidden", "10.0.0.1", "inside"),
        ('for="1.2.3.4', "10.0.0.1", "inside"),
        ("for=203.0.113.5;for=203.0.113.6", "10.0.0.1", "inside"),
        ("nonsense", "10.0.0.1", "inside"),
        (", ".join(["for=203.0.113.5"] * 33), "10.0.0.1", "inside"),
        ('for="a\\"b"', "10.0.0.1", "inside"),
    ],
)
def test_forwarded_is_read_strictly(value: str, address: str, host: str) -> None:
    forwarding = Forwarding(PROXIES, ForwardedForm.FORWARDED)
    sent = request("10.0.0.1", ("host", "inside"), ("forwarded", value))
    client = forwarding.client_of(sent)
    assert (client.address, client.host) == (address, host)


def test_the_nearest_of_several_proxies_is_heard() -> None:
    sent = request(
        "10.0.0.1",
        ("host", "inside"),
        ("x-forwarded-proto", "http, https"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-host", "parley.example"),
    )
    client = Forwarding(PROXIES).client_of(sent)
    assert (client.scheme, client.host) == ("https", "parley.example")
