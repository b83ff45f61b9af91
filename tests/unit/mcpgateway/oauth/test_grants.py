"""The states of grants, and when they are renewed."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mcpgateway.oauth.domain.grants import (
    AuthMethod,
    ClientKind,
    Grant,
    GrantFailure,
    GrantStatus,
    Terms,
    Tokens,
    fingerprint_of,
    refresh_time,
    status_text,
)
from mcpgateway.servers.domain import AuthKind, OAuthSettings
from support.mcpgateway.values import NOW, SERVER_ID, a_server

SERVER = a_server(auth_kind=AuthKind.OAUTH2)
TERMS = Terms(
    issuer="https://a.example",
    resource="https://mcp.example/mcp",
    token_url="https://a.example/token",
    revocation_url="",
    client_id="c",
    client_kind=ClientKind.REGISTERED,
    auth_method=AuthMethod.NONE,
    redirect_uri="https://parley.example/mcp/callback",
)
GRANT = Grant(
    id="g",
    server_id=SERVER_ID,
    user_id="ann",
    version=1,
    fingerprint=fingerprint_of(SERVER.settings),
    terms=TERMS,
    tokens=Tokens("secret-access", "secret-refresh"),
    expires_at=NOW + timedelta(hours=1),
    refresh_at=NOW + timedelta(minutes=55),
)
PAST = NOW - timedelta(seconds=1)


@pytest.mark.parametrize(
    ("grant", "status", "words"),
    [
        (GRANT, GrantStatus.CONNECTED, ""),
        (replace(GRANT, expires_at=None), GrantStatus.CONNECTED, ""),
        (replace(GRANT, expires_at=PAST), GrantStatus.EXPIRED_REFRESHABLE, "renewed at its next"),
        (
            replace(GRANT, expires_at=PAST, tokens=Tokens("a")),
            GrantStatus.NEEDS_RECONNECT,
            "cannot be renewed",
        ),
        (
            replace(GRANT, failure=GrantFailure.CLIENT_REFUSED),
            GrantStatus.NEEDS_RECONNECT,
            "no longer knows this installation",
        ),
        (replace(GRANT, missing_scopes=("x",)), GrantStatus.INSUFFICIENT_SCOPE, "permissions: x"),
    ],
)
def test_a_grant_tells_its_state(grant: Grant, status: GrantStatus, words: str) -> None:
    text = status_text(grant, SERVER, NOW)
    assert (grant.status(NOW), words in text, bool(text)) == (status, True, bool(words))


def test_a_grant_is_renewed_ahead_of_its_end_at_times_that_differ() -> None:
    hour = [refresh_time(str(number), NOW, timedelta(hours=1)) for number in range(50)]
    ahead = [end - begin for end, begin in hour if end is not None and begin is not None]
    assert timedelta(minutes=4) <= min(ahead) < max(ahead) <= timedelta(minutes=5)
    short = refresh_time("1", NOW, timedelta(seconds=60))[1]
    assert short is not None
    assert NOW + timedelta(seconds=54) <= short <= NOW + timedelta(seconds=55.2)
    assert refresh_time("1", NOW, None) == (None, None)


def test_tokens_are_not_printed() -> None:
    assert "secret-" not in repr(GRANT)


def test_a_grant_belongs_to_the_address_the_client_and_the_endpoints() -> None:
    settings = SERVER.settings
    same = replace(settings, description="x", oauth=OAuthSettings(scopes=("a",)))
    others = [
        replace(settings, url="https://other.example"),
        replace(settings, oauth=OAuthSettings(client_id="x")),
        replace(settings, oauth=OAuthSettings(token_url="https://x.example")),
    ]
    assert fingerprint_of(same) == GRANT.fingerprint
    assert GRANT.fingerprint not in {fingerprint_of(each) for each in others}
