"""Authenticates the calls of a service by their tokens and authorises them by method rules."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import assert_never

from parley.clock import Clock
from parley.identity.caller import ANONYMOUS, Caller, ServiceName
from parley.identity.errors import (
    Forbidden,
    RefusalReason,
    RevocationsUnknown,
    Unauthenticated,
)
from parley.identity.revocations import Revocations
from parley.identity.rules import CallerRule, rule_of
from parley.identity.trust import Trust
from parley.identity.verification import CallToken, ServiceToken, VerifiedToken, verify

CACHED_TOKENS_MAX = 4096
# Cached tokens are verified again this often, so that a key's retirement affects long-lived tokens.
CACHED_TOKEN_MAX_AGE_S = 60

OPEN_SERVICES = (
    "/grpc.health.v1.Health/",
    "/grpc.reflection.v1.ServerReflection/",
    "/grpc.reflection.v1alpha.ServerReflection/",
)


@dataclass(frozen=True, slots=True)
class _Cached:
    token: VerifiedToken
    drop_at: datetime


class Guard:
    """Decides which calls to one service are admitted.

    The order is: open methods, the token, the connection's certificate, revocation, the method's
    rule. Only the token's verification is cached; the rest is checked on every call.
    """

    def __init__(
        self,
        service: ServiceName,
        trust: Trust,
        revocations: Revocations,
        clock: Clock,
        peers_by_certificate: bool,
        *,
        rules: Callable[[str], CallerRule | None] = rule_of,
    ) -> None:
        self._service = service
        self._trust = trust
        self._revocations = revocations
        self._clock = clock
        self._peers_by_certificate = peers_by_certificate
        self._find_rule = rules
        self._rules: dict[str, CallerRule] = {}
        self._cache: dict[str, _Cached] = {}

    def admit(self, method: str, authorization: str | None, peer: ServiceName | None) -> Caller:
        """Return the caller of "/pkg.Service/Method".

        Args:
            method: The full method name.
            authorization: The value of the `authorization` metadata, if it was sent.
            peer: The service that the connection's certificate names, if any.

        Raises:
            Unauthenticated: The call does not prove who makes it.
            Forbidden: The caller may not use this method, or the method declares no callers.
        """
        if method.startswith(OPEN_SERVICES):
            return ANONYMOUS
        token = self._verified(_bearer(authorization))
        if self._peers_by_certificate:
            _check_peer(token, peer)
        if isinstance(token, ServiceToken):
            self._check_revocation(token.token_id)
        return _match(method, self._rule(method), token)

    def check_again(self, caller: Caller) -> None:
        """Check that an admitted caller may continue; cheap enough for every message.

        Raises:
            Unauthenticated: The service token was revoked meanwhile.
        """
        if caller.token_id is not None:
            self._check_revocation(caller.token_id)

    def remaining_s(self, caller: Caller) -> float | None:
        """Return the seconds until the caller's service token expires; None without one."""
        if caller.expires_at is None:
            return None
        return (caller.expires_at - self._clock.now()).total_seconds()

    def _verified(self, text: str) -> VerifiedToken:
        now = self._clock.now()
        cached = self._cache.get(text)
        if cached is not None:
            if now < cached.drop_at:
                return cached.token
            del self._cache[text]
        verified, good_until = verify(
            text, audience=self._service, trust=self._trust, clock=self._clock
        )
        drop_at = min(good_until, now + timedelta(seconds=CACHED_TOKEN_MAX_AGE_S))
        self._make_room(now)
        self._cache[text] = _Cached(verified, drop_at)
        return verified

    def _make_room(self, now: datetime) -> None:
        while self._cache:
            oldest = next(iter(self._cache))
            if len(self._cache) < CACHED_TOKENS_MAX and now < self._cache[oldest].drop_at:
                return
            del self._cache[oldest]

    def _check_revocation(self, token_id: str) -> None:
        try:
            is_revoked = self._revocations.is_revoked(token_id)
        except RevocationsUnknown:
            raise Unauthenticated(RefusalReason.REVOCATIONS_UNKNOWN) from None
        if is_revoked:
            raise Unauthenticated(RefusalReason.TOKEN_REVOKED)

    def _rule(self, method: str) -> CallerRule:
        rule = self._rules.get(method) or self._find_rule(method)
        if rule is None:
            raise Forbidden(RefusalReason.METHOD_UNDECLARED, method)
        self._rules[method] = rule
        return rule


def _bearer(authorization: str | None) -> str:
    if not authorization:
        raise Unauthenticated(RefusalReason.TOKEN_MISSING)
    scheme, _, text = authorization.partition(" ")
    if scheme.lower() != "bearer" or not text:
        raise Unauthenticated(RefusalReason.TOKEN_MALFORMED)
    return text


def _check_peer(token: VerifiedToken, peer: ServiceName | None) -> None:
    """Refuse a token on a connection whose certificate is not that of the token's holder.

    A service token is held by a program that is not a Parley service, so a Parley service that
    presents one must have obtained it wrongly.
    """
    expected = token.issuer if isinstance(token, CallToken) else None
    if peer is not expected:
        raise Unauthenticated(RefusalReason.PEER_MISMATCH)


def _match(method: str, rule: CallerRule, token: VerifiedToken) -> Caller:
    match token:
        case CallToken(issuer, user):
            if issuer not in (rule.services if user is None else rule.for_users):
                raise Forbidden(RefusalReason.CALLER_NOT_ALLOWED, method)
            if user is not None and not rule.accepts_role(user.role):
                raise Forbidden(RefusalReason.ROLE_NOT_ALLOWED, method)
            return Caller(issuer, user, frozenset(), None, issuer.value)
        case ServiceToken(token_id, name, user, scopes, good_until):
            if rule.scope is None:
                raise Forbidden(RefusalReason.CALLER_NOT_ALLOWED, method)
            if not rule.accepts_scopes(scopes):
                raise Forbidden(RefusalReason.SCOPE_MISSING, method)
            if not rule.accepts_role(user.role):
                raise Forbidden(RefusalReason.ROLE_NOT_ALLOWED, method)
            return Caller(None, user, scopes, token_id, name, good_until)
        case _:
            assert_never(token)
