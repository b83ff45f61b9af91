"""How clients are distinguished before they are authenticated."""

from typing import Any

import pytest

from gateway.http.limits.client_keys import ClientKeys


def scope(address: str, **headers: str) -> dict[str, Any]:
    """Return what is known of a request."""
    fields = [(name.encode(), value.encode()) for name, value in headers.items()]
    return {"client": (address, 40_000), "headers": fields}


KEY, OTHER_KEY = (
    scope("10.0.0.1", authorization="Bearer a"),
    scope("10.0.0.1", authorization="Bearer b"),
)
SESSION = scope("10.0.0.1", cookie="parley_session=a")
WITHOUT = scope("10.0.0.1")


def test_credentials_that_were_not_authenticated_share_the_key_of_their_address() -> None:
    keys = ClientKeys()

    assert {keys.of(each) for each in (KEY, OTHER_KEY, SESSION, WITHOUT)} == {keys.of(WITHOUT)}
    assert keys.of(scope("10.0.0.2", authorization="Bearer a")) != keys.of(WITHOUT)


def test_an_authenticated_credential_has_its_own_key_from_any_address() -> None:
    keys = ClientKeys()
    for each in (KEY, SESSION, WITHOUT):
        keys.remember(each)

    assert keys.of(KEY) == keys.of(scope("10.0.0.2", authorization="Bearer a"))
    assert len({keys.of(each) for each in (KEY, SESSION, OTHER_KEY)}) == 3
    assert keys.of(OTHER_KEY) == keys.of(WITHOUT)


def test_a_request_with_a_key_and_a_cookie_is_that_of_the_key() -> None:
    keys = ClientKeys()
    keys.remember(SESSION)

    both = scope("10.0.0.1", cookie="parley_session=a", authorization="Bearer forged")
    assert keys.of(both) == keys.of(WITHOUT)


@pytest.mark.parametrize(
    "written",
    [
        scope("10.0.0.1", cookie="x=1; parley_session=a"),
        scope("10.0.0.1", cookie="parley_session=a;y=2"),
        scope("10.0.0.1", cookie="__Host-parley_session=a"),
    ],
)
def test_what_else_is_in_the_cookies_makes_no_other_client(written: dict[str, Any]) -> None:
    keys = ClientKeys(credentials_max=1)
    keys.remember(SESSION)
    keys.remember(written)

    assert keys.of(written) == keys.of(SESSION) != keys.of(WITHOUT)


def test_spaces_before_a_key_and_cookies_without_a_session_make_no_other_client() -> None:
    keys = ClientKeys()
    keys.remember(KEY)

    assert keys.of(scope("10.0.0.1", authorization="Bearer    a ")) == keys.of(KEY)
    keys.remember(scope("10.0.0.1", cookie="x=1"))
    assert keys.of(scope("10.0.0.1", cookie="x=1")) == keys.of(WITHOUT)


def test_addresses_of_one_network_of_ipv6_are_one_client() -> None:
    keys = ClientKeys()

    assert keys.of(scope("2001:db8::1")) == keys.of(scope("2001:db8::2:3"))
    assert keys.of(scope("2001:db8::1")) != keys.of(scope("2001:db8:0:1::1"))


def test_credentials_that_were_not_used_for_longest_are_forgotten() -> None:
    keys = ClientKeys(credentials_max=1)
    keys.remember(KEY)
    keys.remember(OTHER_KEY)

    assert keys.of(KEY) == keys.of(WITHOUT)
    assert keys.of(OTHER_KEY) != keys.of(WITHOUT)
