"""Validation of server settings and secrets; all problems of a request are reported together."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

import httpx2

from mcpgateway.servers.domain import (
    AuthKind,
    Credentials,
    Limits,
    OAuthSettings,
    Server,
    ServerSettings,
)
from mcpgateway.servers.errors import CredentialsNeeded, InvalidRequest
from parley.http import Address, AddressInvalid

RESERVED_SLUGS: Final = frozenset({"workspace", "builtin", "find"})
SLUG: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
HEADER_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}")
# The transport sets these, or its framing depends on them.
TRANSPORT_HEADERS: Final = frozenset(
    {"host", "content-length", "connection", "transfer-encoding", "accept", "content-type"}
)
SLOTS_MAX: Final = 8
GRANTEES_MAX: Final = 500
LIMIT_RANGES: Final = {
    "connect_timeout_ms": (1_000, 60_000),
    "idle_timeout_ms": (1_000, 600_000),
    "call_timeout_ms": (1_000, 3_600_000),
    "result_bytes_max": (1_024, 16_777_216),
    "calls_max": (1, 1_000),
    "calls_per_user_max": (1, 1_000),
}

Problem = tuple[str, str]


def check_server(
    settings: ServerSettings, credentials: Credentials, found: Mapping[str, str]
) -> None:
    """Reject invalid settings and secrets.

    Args:
        settings: The settings.
        credentials: The secrets.
        found: Problems that were already found, by field.

    Raises:
        InvalidRequest: With every invalid field.
    """
    settings_problems = dict(_settings_problems(settings))
    credential_problems = dict(_credential_problems(settings, credentials))
    if problems := {**found, **settings_problems, **credential_problems}:
        raise InvalidRequest(problems)


def _settings_problems(settings: ServerSettings) -> Iterator[Problem]:
    if not SLUG.fullmatch(settings.slug):
        yield "settings.slug", "give 1 to 32 of a-z, 0-9 and inner dashes"
    elif settings.slug in RESERVED_SLUGS:
        yield "settings.slug", "this slug is taken by Parley itself"
    if not 1 <= len(settings.display_name) <= 128:
        yield "settings.display_name", "give 1 to 128 characters"
    if len(settings.description) > 2048:
        yield "settings.description", "give at most 2048 characters"
    if len(settings.icon) > 2048:
        yield "settings.icon", "give at most 2048 characters"
    if (problem := _url_problem(settings.url)) is not None:
        yield "settings.url", problem
    if settings.api_key_header and settings.auth_kind is not AuthKind.API_KEY:
        yield "settings.api_key_header", "only goes with an API key"
    elif settings.api_key_header and not _is_own_header(settings.api_key_header):
        yield "settings.api_key_header", "is not a header that may be set"
    if settings.oauth is not None and settings.auth_kind is not AuthKind.OAUTH2:
        yield "settings.oauth", "only goes with OAuth"
    yield from _list_problems(settings)
    yield from _limit_problems(settings.limits)
    yield from _slot_problems(settings)
    if max(len(settings.user_ids), len(settings.group_ids)) > GRANTEES_MAX:
        yield "settings.user_ids", f"give at most {GRANTEES_MAX} users and {GRANTEES_MAX} groups"
    texts = (settings.display_name, settings.description, settings.icon, settings.url)
    if any("\0" in text for text in texts):
        yield "settings", "no text may hold NUL"


def _url_problem(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        httpx2.URL(url)
    except (ValueError, httpx2.InvalidURL):
        return "is not a URL"
    if len(url) > 2048 or not is_whole:
        return "give an http or https URL of at most 2048 characters"
    if parts.username is not None or parts.password is not None or parts.fragment:
        return "give it without user name, password and fragment"
    return None


def _list_problems(settings: ServerSettings) -> Iterator[Problem]:
    lists = {"allow": settings.tool_allow_list, "deny": settings.tool_deny_list}
    for name, tools in lists.items():
        if len(tools) > 500 or any(not 1 <= len(tool) <= 128 or "\0" in tool for tool in tools):
            yield f"settings.tool_{name}_list", "give at most 500 names of 1 to 128 characters"
    if set(settings.tool_allow_list) & set(settings.tool_deny_list):
        yield "settings.tool_deny_list", "a tool is in both lists"


def _slot_problems(settings: ServerSettings) -> Iterator[Problem]:
    headers = [slot.header.lower() for slot in settings.user_values]
    if len(headers) > SLOTS_MAX or len(set(headers)) < len(headers):
        yield "settings.user_values", f"give at most {SLOTS_MAX} headers, each once"
    if not all(_is_own_header(slot.header) for slot in settings.user_values):
        yield "settings.user_values", "a name is not a header that may be set"
    if settings.auth_kind is AuthKind.OAUTH2 and "authorization" in headers:
        yield "settings.user_values", "OAuth sets the header Authorization itself"


def check_user_values(settings: ServerSettings, values: Mapping[str, str]) -> None:
    """Reject values of a user that do not fit the slots of the server.

    Raises:
        InvalidRequest: With every problem.
    """
    slots = {slot.header for slot in settings.user_values}
    problems = {}
    if set(values) != slots:
        problems["values"] = f"give exactly the headers {', '.join(sorted(slots)) or '(none)'}"
    for value in values.values():
        if (problem := _value_problem(value)) is not None:
            problems["values"] = problem
    if problems:
        raise InvalidRequest(problems)


def _value_problem(value: str) -> str | None:
    if not 1 <= len(value) <= 8192 + len("Bearer ") or not value.isprintable():
        return "a value is empty, too long or holds control characters"
    return None if value.isascii() else "a value holds characters that headers cannot carry"


def _limit_problems(limits: Limits) -> Iterator[Problem]:
    for name, (least, most) in LIMIT_RANGES.items():
        if not least <= getattr(limits, name) <= most:
            yield f"settings.limits.{name}", f"give {least} to {most}"


def _credential_problems(settings: ServerSettings, credentials: Credentials) -> Iterator[Problem]:
    match settings.auth_kind:
        case AuthKind.NONE:
            if credentials:
                yield "credentials", "a server without authorization has no secrets"
        case AuthKind.OAUTH2:
            if credentials.headers or len(credentials.oauth_client_secret) > 4096:
                yield "credentials", "give the OAuth client's secret, at most 4096 bytes"
        case AuthKind.API_KEY | AuthKind.CUSTOM_HEADERS:
            if not credentials.headers or credentials.oauth_client_secret:
                yield "credentials", f"give the {settings.auth_kind.replace('_', ' ')}"
    if len(credentials.headers) > 32:
        yield "credentials.custom_headers", "give at most 32 headers"
    for name, value in credentials.headers.items():
        if not _is_own_header(name):
            yield "credentials.custom_headers", "a name is not a header that may be set"
        if (problem := _value_problem(value)) is not None:
            yield "credentials", problem


def _is_own_header(name: str) -> bool:
    lower = name.lower()
    is_transport = lower in TRANSPORT_HEADERS or lower.startswith("mcp-")
    return bool(HEADER_NAME.fullmatch(name)) and not is_transport


def credential_origins(settings: ServerSettings) -> frozenset[str]:
    """Return where credentials are sent to, each as `https://host:port`.

    Keys and headers are sent to the server itself. The secret of an OAuth client is sent to the
    configured endpoints, or to those that the issuer or else the server itself names.
    """
    if settings.auth_kind is not AuthKind.OAUTH2:
        return frozenset({_origin(settings.url)})
    oauth = settings.oauth or OAuthSettings()
    if oauth.authorization_url and oauth.token_url:
        endpoints = (oauth.token_url, oauth.revocation_url)
        return frozenset(_origin(url) for url in endpoints if url)
    return frozenset({_origin(oauth.issuer or settings.url)})


def check_origins(before: Server, after: ServerSettings) -> None:
    """Check that a change which keeps the stored credentials sends them to no other origin.

    Raises:
        CredentialsNeeded: It would.
    """
    old = credential_origins(before.settings)
    added = credential_origins(after) - old
    if before.has_credentials and added:
        raise CredentialsNeeded(origins_text(old), origins_text(added))


def origins_text(origins: frozenset[str]) -> str:
    """Return origins as one text, always in the same order."""
    return " ".join(sorted(origins))


def _origin(url: str) -> str:
    """Return the origin of a URL; the URL itself if its origin may be read differently elsewhere.

    There are several mappings of a host with other letters than ASCII to the name that is looked
    up, so such a URL has an origin of its own.
    """
    if not url.isascii():
        return url
    try:
        address, _ = Address.read(url)
    except AddressInvalid:
        return url
    return address.origin
