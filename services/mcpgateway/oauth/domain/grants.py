"""Grants: what a user may do at a server, in which state that is, and when it is renewed."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID, uuid5

import msgspec

from mcpgateway.servers.domain import Server, ServerSettings

#: A token is renewed this long before its end at most, or this share of its lifetime.
AHEAD: Final = timedelta(minutes=5)
AHEAD_SHARE: Final = 0.1


class ClientKind(StrEnum):
    """Where a client id comes from."""

    CONFIGURED = "configured"
    DOCUMENT = "document"
    REGISTERED = "registered"


class AuthMethod(StrEnum):
    """How a client authenticates at the token endpoint."""

    NONE = "none"
    BASIC = "client_secret_basic"
    POST = "client_secret_post"


class GrantStatus(StrEnum):
    """Whether a user can use a server; the names are those of the proto."""

    NOT_CONNECTED = "NOT_CONNECTED"
    CONNECTED = "CONNECTED"
    EXPIRED_REFRESHABLE = "EXPIRED_REFRESHABLE"
    NEEDS_RECONNECT = "NEEDS_RECONNECT"
    INSUFFICIENT_SCOPE = "INSUFFICIENT_SCOPE"


class GrantFailure(StrEnum):
    """Why a grant cannot be used any more."""

    NONE = ""
    REFRESH_REFUSED = "refresh_refused"
    TOKEN_REFUSED = "token_refused"
    CLIENT_REFUSED = "client_refused"
    UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """With whom and for what a grant was made; tokens are only ever sent to these places.

    Attributes:
        issuer: The authorization server.
        resource: The resource that the tokens are for (RFC 8707).
        token_url: Where the grant is renewed.
        revocation_url: Where it is revoked; empty if nowhere.
        client_id: The client that it was made with.
        client_kind: Where the client id comes from.
        auth_method: How the client authenticates.
        redirect_uri: Where the browser was sent back to.
    """

    issuer: str
    resource: str
    token_url: str
    revocation_url: str
    client_id: str
    client_kind: ClientKind
    auth_method: AuthMethod
    redirect_uri: str


@dataclass(frozen=True, slots=True)
class Tokens:
    """The secrets of a grant."""

    access_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class TokenAnswer:
    """What a token endpoint answered.

    Attributes:
        tokens: The tokens; without a refresh token the old one stays.
        lifetime: How long the access token can be used; None if unknown.
        scopes: The granted scopes; None if they are those that were asked for.
    """

    tokens: Tokens
    lifetime: timedelta | None = None
    scopes: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """The stored grant of one user at one server.

    Attributes:
        id: Derived from server and user; the ciphertext is bound to it.
        server_id: The server.
        user_id: The user.
        version: Grows with each change of the tokens.
        fingerprint: Of the settings that the grant was made under.
        terms: With whom it was made.
        tokens: Its secrets; empty if they cannot be decrypted.
        expires_at: When the access token ends; None if unknown.
        refresh_at: From when on it is renewed.
        granted_scopes: What it covers.
        missing_scopes: What the server asked for beyond that.
        failure: Why it cannot be used.
    """

    id: str
    server_id: str
    user_id: str
    version: int
    fingerprint: str
    terms: Terms
    tokens: Tokens = field(repr=False)
    expires_at: datetime | None
    refresh_at: datetime | None
    granted_scopes: tuple[str, ...] = ()
    missing_scopes: tuple[str, ...] = ()
    failure: GrantFailure = GrantFailure.NONE

    @property
    def authorization(self) -> str:
        """The value of the header Authorization."""
        # Some servers refuse the scheme in another spelling than this.
        return f"Bearer {self.tokens.access_token}"

    def is_expired(self, now: datetime) -> bool:
        """Return whether the access token has ended."""
        return self.expires_at is not None and self.expires_at <= now

    def is_due(self, now: datetime) -> bool:
        """Return whether it is time to renew it."""
        return self.refresh_at is not None and self.refresh_at <= now

    def status(self, now: datetime) -> GrantStatus:
        """Return its state, without asking anybody."""
        if self.failure:
            return GrantStatus.NEEDS_RECONNECT
        if self.is_expired(now):
            is_lasting = bool(self.tokens.refresh_token)
            return GrantStatus.EXPIRED_REFRESHABLE if is_lasting else GrantStatus.NEEDS_RECONNECT
        if self.missing_scopes:
            return GrantStatus.INSUFFICIENT_SCOPE
        return GrantStatus.CONNECTED


def grant_id(server_id: str, user_id: str) -> str:
    """Return the id of the only grant of a user at a server."""
    return str(uuid5(UUID(server_id), f"grant:{user_id}"))


def fingerprint_of(settings: ServerSettings) -> str:
    """Return a hash of the settings under which a grant is made: others make it worthless."""
    return hashlib.sha256(msgspec.json.encode(settings.login_terms)).hexdigest()


def refresh_time(
    grant_row_id: str, now: datetime, lifetime: timedelta | None
) -> tuple[datetime | None, datetime | None]:
    """Return when a token ends and from when on it is renewed.

    The second differs a little between grants, so that those made together are not renewed at once.
    """
    if lifetime is None:
        return None, None
    ahead = min(AHEAD, lifetime * AHEAD_SHARE)
    spread = hashlib.sha256(grant_row_id.encode()).digest()[0] / 255
    return now + lifetime, now + lifetime - ahead * (0.8 + 0.2 * spread)


def status_text(grant: Grant | None, server: Server, now: datetime) -> str:
    """Return the state of a grant for a person; empty if there is nothing to do."""
    name = server.settings.display_name
    if grant is None:
        return f"You are not connected to {name}. Connect your account to use it."
    match grant.failure:
        case GrantFailure.REFRESH_REFUSED:
            return (
                f"The login at {name} has ended: it was revoked there, or not used for too long. "
                "Connect again."
            )
        case GrantFailure.TOKEN_REFUSED:
            return f"{name} no longer accepts your login. Connect again."
        case GrantFailure.CLIENT_REFUSED:
            return f"{name} no longer knows this installation. Connect again."
        case GrantFailure.UNREADABLE:
            return f"Your login at {name} cannot be decrypted. Connect again."
        case GrantFailure.NONE:
            return _text_without_failure(grant, name, now)


def _text_without_failure(grant: Grant, name: str, now: datetime) -> str:
    match grant.status(now):
        case GrantStatus.NEEDS_RECONNECT:
            return f"Your login at {name} has expired and cannot be renewed. Connect again."
        case GrantStatus.EXPIRED_REFRESHABLE:
            return f"Your login at {name} has expired and is renewed at its next use."
        case GrantStatus.INSUFFICIENT_SCOPE:
            scopes = ", ".join(grant.missing_scopes)
            return f"{name} asks for more permissions: {scopes}. Connect again to grant them."
        case _:
            return ""
