"""Where a secret may go, as chatd judges it."""

import pytest

from chatd.workspaces.domain.secrets import Delivery, Secret, canonical_pattern, hint_of


def secret(*hosts: str, delivery: Delivery = Delivery.PROXY) -> Secret:
    return Secret("id", "api-token", "owner", delivery, hosts)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("GitHub.com", "github.com:443"),
        ("github.com:8443", "github.com:8443"),
        ("*.example.org", "*.example.org:443"),
        ("*.org", None),
        ("*", None),
        ("https://github.com", None),
        ("user@github.com", None),
        ("github.com.", None),
        ("github.com:0", None),
        ("github.com:99999", None),
        ("gïthub.com", None),
        ("github.com\n", None),
        ("", None),
    ],
)
def test_a_host_has_one_spelling_or_is_none(text: str, canonical: str | None) -> None:
    assert canonical_pattern(text) == canonical


@pytest.mark.parametrize(
    ("place", "is_right"),
    [
        ("github.com:443", True),
        ("github.com", True),
        ("GITHUB.com:443", True),
        ("github.com:80", False),
        ("api.github.com:443", False),
        ("evilgithub.com:443", False),
        ("github.com.evil.test:443", False),
        ("a.example.org:443", True),
        ("a.b.example.org:443", True),
        ("example.org:443", False),
        ("badexample.org:443", False),
        ("*.example.org:443", False),
        ("", False),
    ],
)
def test_a_secret_goes_to_its_hosts_only(place: str, is_right: bool) -> None:
    assert secret("github.com:443", "*.example.org:443").may_go_to(place) is is_right


def test_a_variable_goes_nowhere() -> None:
    variable = secret(delivery=Delivery.ENVIRONMENT)

    assert variable.variable == "API_TOKEN"
    assert variable.may_go_to("")
    assert not variable.may_go_to("github.com:443")


def test_a_hint_is_never_half_of_the_value() -> None:
    assert (hint_of(b"0123456789abcdef"), hint_of(b"short")) == ("cdef", "")
