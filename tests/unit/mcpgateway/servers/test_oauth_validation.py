"""OAuth settings with which no login can succeed."""

from typing import Any

import pytest

from mcpgateway.servers.domain import AuthKind, Credentials, OAuthSettings, ServerSettings
from mcpgateway.servers.oauth_validation import oauth_problems
from parley.egress.policy import Policy

ISSUER = "https://login.example"
ENDPOINTS = {"authorization_url": f"{ISSUER}/agree", "token_url": f"{ISSUER}/token"}


def problems_of(
    credentials: Credentials | None = None, policy: Policy | None = None, **oauth: Any
) -> dict[str, str]:
    settings = ServerSettings(
        slug="demo",
        display_name="Demo",
        url="https://mcp.example/mcp",
        auth_kind=AuthKind.OAUTH2,
        oauth=OAuthSettings(**oauth),
    )
    found = oauth_problems(settings, credentials or Credentials(), policy or Policy())
    return {field.removeprefix("settings.oauth."): text for field, text in found.items()}


@pytest.mark.parametrize(
    "oauth",
    [
        {},
        {"client_id": "us"},
        {"issuer": ISSUER},
        {"client_id": "us", "issuer": ISSUER, "scopes": ("a", "b:c")},
        {"client_id": "us", **ENDPOINTS},
        {"client_id": "us", **ENDPOINTS, "revocation_url": f"{ISSUER}/revoke?x=1"},
        {"issuer": "http://127.0.0.1:8080"},
        {"issuer": "http://localhost:8080"},
        {"issuer": "http://[::1]:8080"},
    ],
)
def test_settings_that_can_work_are_accepted(oauth: dict[str, Any]) -> None:
    assert problems_of(**oauth) == {}


@pytest.mark.parametrize(
    ("oauth", "fields"),
    [
        (ENDPOINTS, {"client_id"}),
        ({"client_id": "us", "token_url": f"{ISSUER}/token"}, {"authorization_url"}),
        ({"client_id": "us", "authorization_url": f"{ISSUER}/agree"}, {"token_url"}),
        (
            {"client_id": "us", "revocation_url": f"{ISSUER}/revoke"},
            {"authorization_url", "token_url"},
        ),
        ({"client_id": "ü"}, {"client_id"}),
        ({"client_id": "x" * 513}, {"client_id"}),
        ({"issuer": "http://login.example"}, {"issuer"}),
        ({"issuer": "login.example"}, {"issuer"}),
        ({"issuer": "ftp://login.example"}, {"issuer"}),
        ({"issuer": "https://"}, {"issuer"}),
        ({"issuer": "https://[login/"}, {"issuer"}),
        ({"issuer": "https://login.example:0"}, {"issuer"}),
        ({"issuer": f"{ISSUER}?tenant=1"}, {"issuer"}),
        ({"issuer": f"{ISSUER}#x"}, {"issuer"}),
        ({"issuer": "https://me:secret@login.example"}, {"issuer"}),
        ({"issuer": f"{ISSUER}/a b"}, {"issuer"}),
        ({"issuer": f"{ISSUER}/{'x' * 2048}"}, {"issuer"}),
        ({"scopes": ("a b", "", 'c"', "d", "d")}, {f"scopes[{each}]" for each in (0, 1, 2, 4)}),
        ({"scopes": tuple(f"s{number}" for number in range(65))}, {"scopes"}),
        (
            {"token_url": "http://login.example/token", "scopes": ("a b",)},
            {"client_id", "authorization_url", "token_url", "scopes[0]"},
        ),
    ],
)
def test_every_setting_that_cannot_work_is_named(oauth: dict[str, Any], fields: set[str]) -> None:
    assert set(problems_of(**oauth)) == fields


def test_a_secret_needs_its_client() -> None:
    secret = Credentials(oauth_client_secret="s3cret")

    assert set(problems_of(secret)) == {"client_id"}
    assert problems_of(secret, client_id="us") == {}


def test_an_operator_may_allow_plain_http_to_a_host() -> None:
    policy = Policy.parse("login.example:8080")

    assert problems_of(policy=policy, issuer="http://login.example:8080") == {}
    assert set(problems_of(policy=policy, issuer="http://other.example:8080")) == {"issuer"}
