"""What admins and callers may send."""

from typing import Any

import pytest

from mcpgateway.runtime.convert import check_arguments
from mcpgateway.servers.domain import AuthKind, Credentials, Limits, ServerSettings
from mcpgateway.servers.errors import BadArguments, InvalidRequest
from mcpgateway.servers.validation import check_server

GOOD: dict[str, Any] = {"slug": "demo", "display_name": "Demo", "url": "https://mcp.example/mcp"}


def problems_of(credentials: Credentials | None = None, **settings: Any) -> dict[str, str]:
    try:
        check_server(ServerSettings(**{**GOOD, **settings}), credentials or Credentials(), {})
    except InvalidRequest as error:
        return dict(error.problems)
    return {}


def test_good_settings_pass() -> None:
    assert problems_of() == {}


def test_every_problem_is_found_at_once() -> None:
    found = problems_of(slug="A_b", display_name="", url="ftp://x", limits=Limits(calls_max=0))

    assert set(found) == {
        "settings.slug",
        "settings.display_name",
        "settings.url",
        "settings.limits.calls_max",
    }


@pytest.mark.parametrize("slug", ["", "-a", "a-", "a__b", "A", "a" * 33, "find", "a\n"])
def test_slugs_that_could_confuse_names_are_refused(slug: str) -> None:
    assert set(problems_of(slug=slug)) == {"settings.slug"}


@pytest.mark.parametrize(
    "url",
    [
        "https://u:p@x/",
        "https://x/#a",
        "https://",
        "/mcp",
        "https://x:0/",
        "https://[x/",
        "http://0177.0.0.1/",
    ],
)
def test_urls_that_hide_something_are_refused(url: str) -> None:
    assert set(problems_of(url=url)) == {"settings.url"}


def test_a_tool_in_both_lists_is_refused() -> None:
    found = problems_of(tool_allow_list=("a",), tool_deny_list=("a",))

    assert set(found) == {"settings.tool_deny_list"}


def test_secrets_must_fit_the_kind_of_authorization() -> None:
    header = Credentials({"X-Key": "secret"})

    assert set(problems_of(header)) == {"credentials"}
    assert set(problems_of(auth_kind=AuthKind.API_KEY)) == {"credentials"}
    assert problems_of(header, auth_kind=AuthKind.API_KEY) == {}


@pytest.mark.parametrize("name", ["Host", "mcp-session-id", "Content-Type", "bad name"])
def test_headers_of_the_transport_cannot_be_set(name: str) -> None:
    found = problems_of(Credentials({name: "x"}), auth_kind=AuthKind.CUSTOM_HEADERS)

    assert set(found) == {"credentials.custom_headers"}


def test_header_values_cannot_break_out() -> None:
    found = problems_of(Credentials({"X-Key": "a\r\nb: c"}), auth_kind=AuthKind.CUSTOM_HEADERS)

    assert set(found) == {"credentials"}


def test_no_arguments_mean_an_empty_object() -> None:
    assert check_arguments(b"") == b"{}"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (b"[]", "json"),
        (b"{", "json"),
        (b'"a"', "json"),
        (b'{"a":"\xff"}', "json"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "depth"),
        (b'{"a":"' + b"x" * 1024 * 1024 + b'"}', "size"),
    ],
)
def test_arguments_that_are_no_object_within_limits_are_refused(
    arguments: bytes, problem: str
) -> None:
    with pytest.raises(BadArguments) as caught:
        check_arguments(arguments)

    assert caught.value.problem == problem


def test_brackets_in_strings_have_no_depth() -> None:
    arguments = b'{"a":"' + b'[\\"' * 100 + b'"}'

    assert check_arguments(arguments) == arguments
