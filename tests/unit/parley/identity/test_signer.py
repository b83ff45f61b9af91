import json
from datetime import datetime, timedelta
from pathlib import Path

import jwt
import pytest

from parley.clock import FakeClock
from parley.clock.fake import EPOCH
from parley.identity import (
    Role,
    ServiceName,
    Signer,
    SigningKey,
    User,
    UserId,
    followed_signing_key,
)
from parley.identity.tokens import CACHED_CALL_TOKENS_MAX

ADA = User(UserId("ada"), Role.MEMBER)
KEY = SigningKey.generate()


class SetBack(FakeClock):
    """A clock whose wall time somebody sets back."""

    behind_s = 0.0

    def now(self) -> datetime:
        return super().now() - timedelta(seconds=self.behind_s)


def payload_of(token: str) -> object:
    return json.loads(jwt.PyJWS().decode(token, KEY.private.public_key(), algorithms=["EdDSA"]))


def test_a_call_token_says_who_calls_whom_for_whom_and_how_long() -> None:
    clock = FakeClock()
    now_s = int(clock.now().timestamp())
    token = Signer(ServiceName.GATEWAY, KEY, clock).call_token(ServiceName.CHATD, ADA)

    assert jwt.get_unverified_header(token) == {"alg": "EdDSA", "kid": KEY.kid, "typ": "JWT"}
    assert payload_of(token) == {
        "iss": "gateway",
        "aud": ["chatd"],
        "iat": now_s,
        "exp": now_s + 60,
        "typ": "call",
        "sub": "ada",
        "role": "member",
    }


def test_a_service_token_says_what_it_allows() -> None:
    clock = FakeClock()
    now_s = int(clock.now().timestamp())
    token = Signer(ServiceName.GATEWAY, KEY, clock).service_token(
        "token-1", "nightly", ADA, ["b", "a", "b"], clock.now() + timedelta(days=1)
    )

    assert payload_of(token) == {
        "iss": "gateway",
        "aud": ["gateway", "chatd", "mcpgateway"],
        "iat": now_s,
        "exp": now_s + 24 * 3600,
        "typ": "service",
        "sub": "ada",
        "role": "member",
        "scopes": ["a", "b"],
        "jti": "token-1",
        "name": "nightly",
    }


def test_a_call_token_is_reused_until_shortly_before_it_expires() -> None:
    clock = FakeClock()
    signer = Signer(ServiceName.GATEWAY, KEY, clock)
    first = signer.call_token(ServiceName.CHATD, ADA)

    clock.advance(44.9)
    assert signer.call_token(ServiceName.CHATD, ADA) is first
    clock.advance(0.1)
    assert signer.call_token(ServiceName.CHATD, ADA) != first


@pytest.mark.parametrize("offset_s", [3600, -3600])
def test_a_call_token_is_signed_by_the_clock_that_will_check_it(offset_s: int) -> None:
    clock = FakeClock()
    now_s = int(clock.now().timestamp())
    signer = Signer(ServiceName.GATEWAY, KEY, clock)

    payload = payload_of(signer.call_token(ServiceName.CHATD, ADA, offset_s))
    assert isinstance(payload, dict)
    assert (payload["iat"], payload["exp"]) == (now_s + offset_s, now_s + offset_s + 60)


def test_tokens_for_different_clocks_are_kept_apart() -> None:
    clock = FakeClock()
    signer = Signer(ServiceName.GATEWAY, KEY, clock)
    tokens = [signer.call_token(ServiceName.CHATD, ADA, offset_s) for offset_s in (0, 3600, -3600)]

    clock.advance(44.9)
    again = [signer.call_token(ServiceName.CHATD, ADA, offset_s) for offset_s in (0, 3600, -3600)]
    assert again == tokens
    assert len(set(tokens)) == 3
    clock.advance(0.1)
    assert signer.call_token(ServiceName.CHATD, ADA, 3600) not in tokens


def test_a_token_is_not_reused_once_the_clock_was_set_back() -> None:
    clock = SetBack(EPOCH + timedelta(hours=1))
    signer = Signer(ServiceName.GATEWAY, KEY, clock)
    early = signer.call_token(ServiceName.CHATD, ADA)

    clock.behind_s = 3600
    payload = payload_of(signer.call_token(ServiceName.CHATD, ADA))
    assert isinstance(payload, dict)
    assert payload["iat"] == int(EPOCH.timestamp())
    assert signer.call_token(ServiceName.CHATD, ADA) != early


def test_a_signer_tells_how_far_another_clock_is_ahead() -> None:
    clock = FakeClock()
    now_s = int(clock.now().timestamp())
    signer = Signer(ServiceName.GATEWAY, KEY, clock)
    clock.advance(0.9)

    assert [signer.offset_to(now_s + ahead_s) for ahead_s in (0, 3600, -7)] == [0, 3600, -7]


def test_tokens_differ_by_audience_and_user() -> None:
    signer = Signer(ServiceName.GATEWAY, KEY, FakeClock())
    promoted = User(ADA.id, Role.ADMIN)

    tokens = {
        signer.call_token(audience, user)
        for audience in (ServiceName.CHATD, ServiceName.MCPGATEWAY)
        for user in (None, ADA, promoted)
    }
    assert len(tokens) == 6


def test_a_signer_remembers_a_bounded_number_of_tokens() -> None:
    signer = Signer(ServiceName.GATEWAY, KEY, FakeClock())
    for number in range(CACHED_CALL_TOKENS_MAX + 3):
        signer.call_token(ServiceName.CHATD, User(UserId(str(number)), Role.MEMBER))

    assert len(signer._call_tokens) == CACHED_CALL_TOKENS_MAX


def test_new_tokens_are_signed_with_the_key_that_its_file_has_now(tmp_path: Path) -> None:
    path, clock, new = tmp_path / "key", FakeClock(), SigningKey.generate()
    KEY.save(path)
    signer = Signer(ServiceName.GATEWAY, followed_signing_key(path), clock)
    before = signer.call_token(ServiceName.CHATD)
    new.save(path)
    after = signer.call_token(ServiceName.MCPGATEWAY)
    clock.advance(60)
    again = signer.call_token(ServiceName.CHATD)

    kids = [jwt.get_unverified_header(token)["kid"] for token in (before, after, again)]
    assert (kids, signer.key_id) == ([KEY.kid, new.kid, new.kid], new.kid)
