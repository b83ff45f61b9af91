"""Verifies tokens: returns their verified content, or raises a refusal with its reason."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from parley.clock import Clock
from parley.identity.caller import ServiceName, User, UserId
from parley.identity.claims import Claims, TokenKind, decode, read_kid
from parley.identity.errors import RefusalReason, Unauthenticated
from parley.identity.trust import Trust

# How far another machine's clock may be ahead; if it is behind, a token's reuse margin covers it. A
# caller whose clock is further off gets this process's time in the refusal.
CLOCK_SKEW_S = 5


@dataclass(frozen=True, slots=True)
class CallToken:
    """The token of a Parley service that calls for itself or for a user."""

    issuer: ServiceName
    user: User | None


@dataclass(frozen=True, slots=True)
class ServiceToken:
    """The token of an internal caller that calls for a user and within scopes."""

    token_id: str
    name: str
    user: User
    scopes: frozenset[str]
    good_until: datetime


VerifiedToken = CallToken | ServiceToken


def verify(
    text: str, *, audience: ServiceName, trust: Trust, clock: Clock
) -> tuple[VerifiedToken, datetime]:
    """Return the token's verified content for `audience`, and until when it is valid.

    Raises:
        Unauthenticated: It is not valid; the reason says why.
    """
    key = trust.find(read_kid(text))
    if key is None:
        raise Unauthenticated(RefusalReason.TOKEN_KEY_UNKNOWN)
    claims = decode(text, key=key.verifier())
    if claims.iss is not key.service:
        raise Unauthenticated(RefusalReason.TOKEN_ISSUER)
    if audience not in claims.aud:
        raise Unauthenticated(RefusalReason.TOKEN_AUDIENCE)
    expires_at = datetime.fromtimestamp(claims.exp, UTC)
    _check_time(claims, expires_at, clock.now())
    good_until = expires_at if key.retired_at is None else min(expires_at, key.retired_at)
    return _value(claims, good_until), good_until


def _check_time(claims: Claims, expires_at: datetime, now: datetime) -> None:
    """Refuse a token that is not valid now.

    A refused call token carries this process's time, with which its service signs another one; the
    holder of a service token cannot do that. A service token is valid from the start: an issue time
    in the future only means that this clock is behind.
    """
    if claims.typ is TokenKind.SERVICE:
        if now >= expires_at:
            raise Unauthenticated(RefusalReason.TOKEN_EXPIRED)
    elif now >= expires_at:
        raise Unauthenticated(RefusalReason.TOKEN_EXPIRED, now)
    elif datetime.fromtimestamp(claims.iat, UTC) > now + timedelta(seconds=CLOCK_SKEW_S):
        raise Unauthenticated(RefusalReason.TOKEN_NOT_YET_VALID, now)


def _value(claims: Claims, good_until: datetime) -> VerifiedToken:
    if (claims.sub is None) is not (claims.role is None):
        raise Unauthenticated(RefusalReason.TOKEN_MALFORMED)
    user = (
        None if claims.sub is None or claims.role is None else User(UserId(claims.sub), claims.role)
    )
    if claims.typ is TokenKind.CALL:
        return CallToken(claims.iss, user)
    if claims.iss is not ServiceName.GATEWAY:
        raise Unauthenticated(RefusalReason.TOKEN_ISSUER)
    if user is None or claims.jti is None or claims.name is None:
        raise Unauthenticated(RefusalReason.TOKEN_MALFORMED)
    return ServiceToken(claims.jti, claims.name, user, frozenset(claims.scopes), good_until)
