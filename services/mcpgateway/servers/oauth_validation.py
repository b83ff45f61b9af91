"""Validation of OAuth settings: those with which no login can succeed are refused at once."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from mcpgateway.servers.domain import AuthKind, Credentials, OAuthSettings, ServerSettings
from parley.egress.policy import AddressBlocked, Policy

CLIENT_ID_CHARACTERS_MAX: Final = 512
URL_CHARACTERS_MAX: Final = 2048
SCOPES_MAX: Final = 64
SCOPE: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,256}")
CLIENT_ID: Final = re.compile(r"[\x20-\x7e]*")
URLS: Final = ("issuer", "authorization_url", "token_url", "revocation_url")

Problem = tuple[str, str]


def oauth_problems(
    settings: ServerSettings, credentials: Credentials, policy: Policy
) -> dict[str, str]:
    """Return every problem of the OAuth settings, by field.

    Args:
        settings: The settings of the server.
        credentials: Its secrets.
        policy: Where requests may go; it may allow plain HTTP to hosts that it names.
    """
    if settings.auth_kind is not AuthKind.OAUTH2:
        return {}
    oauth = settings.oauth or OAuthSettings()
    found = (*_url_problems(oauth, policy), *_scope_problems(oauth))
    return {
        **dict(_client_problems(oauth, credentials)),
        **dict(_endpoint_problems(oauth)),
        **dict(found),
    }


def _client_problems(oauth: OAuthSettings, credentials: Credentials) -> Iterator[Problem]:
    has_endpoints = bool(oauth.authorization_url or oauth.token_url)
    if len(oauth.client_id) > CLIENT_ID_CHARACTERS_MAX or not CLIENT_ID.fullmatch(oauth.client_id):
        text = f"give at most {CLIENT_ID_CHARACTERS_MAX} printable ASCII characters"
        yield "settings.oauth.client_id", text
    elif not oauth.client_id and has_endpoints:
        yield (
            "settings.oauth.client_id",
            "give the client that is registered there: with endpoints set by hand none is made",
        )
    elif not oauth.client_id and credentials.oauth_client_secret:
        yield "settings.oauth.client_id", "give the client whose secret is in the credentials"


def _endpoint_problems(oauth: OAuthSettings) -> Iterator[Problem]:
    """Yield what is missing: endpoints are used together or not at all."""
    needed = {
        "authorization_url": oauth.token_url or oauth.revocation_url,
        "token_url": oauth.authorization_url or oauth.revocation_url,
    }
    for name, other in needed.items():
        if other and not getattr(oauth, name):
            text = "give it too, or no endpoint at all: then the server is asked for them"
            yield f"settings.oauth.{name}", text


def _url_problems(oauth: OAuthSettings, policy: Policy) -> Iterator[Problem]:
    for name in URLS:
        url: str = getattr(oauth, name)
        problem = _url_problem(url, policy) if url else None
        if problem is None and name == "issuer" and "?" in url:
            problem = "give it without a query"
        if problem is not None:
            yield f"settings.oauth.{name}", problem


def _url_problem(url: str, policy: Policy) -> str | None:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "is not a URL"
    is_whole = parts.scheme in ("http", "https") and bool(host) and port != 0
    if len(url) > URL_CHARACTERS_MAX or not is_whole or not url.isprintable() or " " in url:
        return f"give an https URL of at most {URL_CHARACTERS_MAX} characters"
    if parts.username is not None or parts.password is not None or "#" in url:
        return "give it without user name, password and fragment"
    if parts.scheme == "http" and not _is_loopback(host) and not _is_named(policy, host, port):
        return "give an https URL: tokens are not sent by plain HTTP"
    return None


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_named(policy: Policy, host: str, port: int | None) -> bool:
    """Return whether an operator allows plain HTTP to this host."""
    try:
        policy.check_request("http", host, port)
    except AddressBlocked:
        return False
    return True


def _scope_problems(oauth: OAuthSettings) -> Iterator[Problem]:
    if len(oauth.scopes) > SCOPES_MAX:
        yield "settings.oauth.scopes", f"give at most {SCOPES_MAX} scopes"
    for index, scope in enumerate(oauth.scopes):
        place = f"settings.oauth.scopes[{index}]"
        if not SCOPE.fullmatch(scope):
            text = "give 1 to 256 printable ASCII characters without spaces, quotes and backslashes"
            yield place, text
        elif scope in oauth.scopes[:index]:
            yield place, "name each scope once"
