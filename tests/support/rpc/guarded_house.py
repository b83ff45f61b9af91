"""A guard with the services around it that sign tokens, for tests of whom it admits."""

import json
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import jwt
import pytest

from parley.clock import FakeClock
from parley.identity import (
    CallerRule,
    Guard,
    InMemoryRevocations,
    RefusalReason,
    Refused,
    Role,
    ServiceName,
    Signer,
    SigningKey,
    Trust,
    TrustFile,
    User,
    UserId,
)

GATEWAY, CHATD = ServiceName.GATEWAY, ServiceName.CHATD
TOOLRUNNER, MCPGATEWAY = ServiceName.TOOLRUNNER, ServiceName.MCPGATEWAY
ADA = User(UserId("ada"), Role.MEMBER)
SEND = "/parley.Chats/Send"
REGISTER = "/parley.Nodes/Register"
RULES = {
    SEND: CallerRule(
        for_users=frozenset({GATEWAY}),
        roles=frozenset({Role.OWNER, Role.MEMBER}),
        scope="chats:write",
    ),
    REGISTER: CallerRule(services=frozenset({TOOLRUNNER})),
}


class House:
    """Every service's key, trusted, and the guard of chatd."""

    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        self.file = TrustFile(directory / "trust.json")
        self.keys = {service: SigningKey.generate() for service in ServiceName}
        for service, key in self.keys.items():
            self.file.add_key(service, key)
        self.revocations = InMemoryRevocations(())
        self.rules_asked: list[str] = []

    def signer(self, service: ServiceName) -> Signer:
        """Return what signs tokens of a service."""
        return Signer(service, self.keys[service], self.clock)

    def guard(self, *, peers_by_certificate: bool = False) -> Guard:
        """Return the guard of chatd."""
        trust = Trust(self.file.path, self.clock)
        return Guard(
            CHATD, trust, self.revocations, self.clock, peers_by_certificate, rules=self.rule
        )

    def rule(self, method: str) -> CallerRule | None:
        """Return who may call a method, and note that it was asked."""
        self.rules_asked.append(method)
        return RULES.get(method)

    def service_token(self, *, user: User = ADA, scopes: tuple[str, ...] = ("chats:write",)) -> str:
        """Return a token for an internal caller."""
        expires_at = self.clock.now() + timedelta(days=90)
        signer = self.signer(GATEWAY)
        return signer.service_token("token-1", "nightly", user, scopes, expires_at)


def bearer(token: str) -> str:
    """Return a token as a call carries it."""
    return f"Bearer {token}"


def reason_of(
    guard: Guard, method: str, authorization: str | None, peer: ServiceName | None
) -> RefusalReason:
    """Return why a guard refuses a call."""
    with pytest.raises(Refused) as caught:
        guard.admit(method, authorization, peer)
    return caught.value.reason


def forge(key: SigningKey, changes: Mapping[str, object], named: SigningKey | None = None) -> str:
    """Return a token with some claims changed or left out (None), under the name of a key."""
    now_s = int(FakeClock().now().timestamp())
    claims: dict[str, object] = {
        "iss": "gateway",
        "aud": ["chatd"],
        "iat": now_s,
        "exp": now_s + 60,
        "typ": "call",
        "sub": "ada",
        "role": "member",
    }
    claims.update(changes)
    payload = json.dumps({name: value for name, value in claims.items() if value is not None})
    headers = {"kid": (named or key).kid}
    return jwt.PyJWS().encode(payload.encode(), key.private, "EdDSA", headers=headers)
