"""Addresses of providers, as people write them."""

import pytest

from parley.http import Address, AddressInvalid


@pytest.mark.parametrize(
    ("url", "address", "path", "authority"),
    [
        ("https://a.test", Address(True, "a.test", 443), "/", "a.test"),
        ("https://a.test:443/v1", Address(True, "a.test", 443), "/v1", "a.test"),
        ("http://a.test:8080/v1?a=b%20c", Address(False, "a.test", 8080), "/v1?a=b%20c", None),
        ("http://[::1]:80/x", Address(False, "::1", 80), "/x", "[::1]"),
        ("http://bücher.test/", Address(False, "xn--bcher-kva.test", 80), "/", None),
        ("HTTP://A.Test/A", Address(False, "a.test", 80), "/A", "a.test"),
    ],
)
def test_an_address_is_a_host_and_what_to_ask_there(
    url: str, address: Address, path: str, authority: str | None
) -> None:
    assert Address.read(url) == (address, path)
    assert address.authority == (authority or address.authority)


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("", "begins with http"),
        ("a.test/v1", "begins with http"),
        ("ftp://a.test", "begins with http"),
        ("http://", "begins with http"),
        ("http://[::1", "no URL"),
        ("http://a.test:port", "no URL"),
        ("http://ann:secret@a.test/", "password"),
        ("http://a.test/a b", "%"),
        ("http://a.test/ü", "%"),
        (f"http://{'a' * 70}.test/", "no name"),
    ],
)
def test_what_is_no_address_is_refused_without_repeating_it(url: str, why: str) -> None:
    with pytest.raises(AddressInvalid) as refused:
        Address.read(url)
    assert why in str(refused.value)
    assert "secret" not in str(refused.value)
