import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.clock import FakeClock
from parley.identity import (
    ANONYMOUS,
    Caller,
    CallerRule,
    Forbidden,
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
    Unauthenticated,
    User,
    UserId,
)
from parley.identity.guard import CACHED_TOKENS_MAX

GATEWAY, CHATD = ServiceName.GATEWAY, ServiceName.CHATD
TOOLRUNNER, MCPGATEWAY = ServiceName.TOOLRUNNER, ServiceName.MCPGATEWAY
ADA = User(UserId("ada"), Role.MEMBER)
EVE = User(UserId("eve"), Role.AUDITOR)

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
        return Signer(service, self.keys[service], self.clock)

    def guard(self, *, peers_by_certificate: bool = False) -> Guard:
        trust = Trust(self.file.path, self.clock)
        return Guard(
            CHATD, trust, self.revocations, self.clock, peers_by_certificate, rules=self.rule
        )

    def rule(self, method: str) -> CallerRule | None:
        self.rules_asked.append(method)
        return RULES.get(method)

    def service_token(self, *, user: User = ADA, scopes: tuple[str, ...] = ("chats:write",)) -> str:
        expires_at = self.clock.now() + timedelta(days=90)
        signer = self.signer(GATEWAY)
        return signer.service_token("token-1", "nightly", user, scopes, expires_at)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def bearer(token: str) -> str:
    return f"Bearer {token}"


def reason_of(
    guard: Guard, method: str, authorization: str | None, peer: ServiceName | None
) -> RefusalReason:
    with pytest.raises(Refused) as caught:
        guard.admit(method, authorization, peer)
    return caught.value.reason


def test_a_service_is_admitted_on_its_own_behalf(house: House) -> None:
    token = house.signer(TOOLRUNNER).call_token(CHATD)

    assert house.guard().admit(REGISTER, bearer(token), None) == Caller(
        service=TOOLRUNNER, user=None, scopes=frozenset(), token_id=None, name="toolrunner"
    )


def test_a_service_is_admitted_for_a_user(house: House) -> None:
    token = house.signer(GATEWAY).call_token(CHATD, ADA)

    assert house.guard().admit(SEND, bearer(token), None) == Caller(
        service=GATEWAY, user=ADA, scopes=frozenset(), token_id=None, name="gateway"
    )


def test_an_internal_caller_is_admitted_with_a_service_token(house: House) -> None:
    assert house.guard().admit(SEND, bearer(house.service_token()), None) == Caller(
        service=None,
        user=ADA,
        scopes=frozenset({"chats:write"}),
        token_id="token-1",
        name="nightly",
        expires_at=house.clock.now() + timedelta(days=90),
    )


def test_a_caller_admitted_before_may_go_on_until_the_token_is_revoked(house: House) -> None:
    guard = house.guard()
    caller = guard.admit(SEND, bearer(house.service_token()), None)
    guard.check_again(caller)

    house.revocations.revoke("token-1")

    with pytest.raises(Unauthenticated) as caught:
        guard.check_again(caller)
    assert caught.value.reason is RefusalReason.TOKEN_REVOKED


def test_a_guard_tells_how_long_a_service_token_is_still_good(house: House) -> None:
    guard = house.guard()
    caller = guard.admit(SEND, bearer(house.service_token()), None)
    service = guard.admit(SEND, bearer(house.signer(GATEWAY).call_token(CHATD, ADA)), None)

    house.clock.advance(60)

    remaining_s = timedelta(days=90).total_seconds() - 60
    assert [guard.remaining_s(each) for each in (caller, service)] == [remaining_s, None]


@dataclass(frozen=True)
class Uninvited:
    method: str
    service: ServiceName
    user: User | None
    reason: RefusalReason


@pytest.mark.parametrize(
    "case",
    [
        Uninvited(REGISTER, GATEWAY, None, RefusalReason.CALLER_NOT_ALLOWED),
        Uninvited(REGISTER, TOOLRUNNER, ADA, RefusalReason.CALLER_NOT_ALLOWED),
        Uninvited(SEND, GATEWAY, None, RefusalReason.CALLER_NOT_ALLOWED),
        Uninvited(SEND, TOOLRUNNER, ADA, RefusalReason.CALLER_NOT_ALLOWED),
        Uninvited(SEND, GATEWAY, EVE, RefusalReason.ROLE_NOT_ALLOWED),
        Uninvited("/parley.Chats/New", GATEWAY, ADA, RefusalReason.METHOD_UNDECLARED),
    ],
)
def test_callers_that_a_method_does_not_name_are_forbidden(house: House, case: Uninvited) -> None:
    token = house.signer(case.service).call_token(CHATD, case.user)

    with pytest.raises(Forbidden) as caught:
        house.guard().admit(case.method, bearer(token), None)
    assert (caught.value.reason, caught.value.method) == (case.reason, case.method)


def test_a_service_token_needs_the_scope_and_the_role(house: House) -> None:
    guard = house.guard()
    unscoped = bearer(house.service_token(scopes=("chats:read",)))
    auditor = bearer(house.service_token(user=EVE))
    good = bearer(house.service_token())

    assert reason_of(guard, SEND, unscoped, None) is RefusalReason.SCOPE_MISSING
    assert reason_of(guard, SEND, auditor, None) is RefusalReason.ROLE_NOT_ALLOWED
    assert reason_of(guard, REGISTER, good, None) is RefusalReason.CALLER_NOT_ALLOWED


@pytest.mark.parametrize("authorization", [None, ""])
def test_a_call_without_a_token_is_unauthenticated_whatever_it_asks_for(
    house: House, authorization: str | None
) -> None:
    for method in (SEND, REGISTER, "/parley.Chats/New"):
        with pytest.raises(Unauthenticated) as caught:
            house.guard().admit(method, authorization, None)
        assert caught.value.reason is RefusalReason.TOKEN_MISSING


@pytest.mark.parametrize(
    "method",
    [
        "/grpc.health.v1.Health/Check",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ],
)
def test_health_and_reflection_are_open(house: House, method: str) -> None:
    assert house.guard(peers_by_certificate=True).admit(method, None, None) is ANONYMOUS


@pytest.mark.parametrize("text", ["Basic abc", "Bearer", "Bearer ", "Bearer a.b", "Bearer é.b.c"])
def test_what_is_no_bearer_token_is_malformed(house: House, text: str) -> None:
    guard = house.guard()

    assert reason_of(guard, SEND, text, None) is RefusalReason.TOKEN_MALFORMED


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=st.text(max_size=60) | st.from_regex(r"[\w-]{0,20}\.[\w-]{0,20}\.[\w-]{0,20}"))
def test_any_text_is_refused_by_type(house: House, text: str) -> None:
    with pytest.raises(Unauthenticated) as caught:
        house.guard().admit(SEND, bearer(text), None)
    assert len(text) < 10 or text not in str(caught.value)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_token_with_one_character_changed_is_refused(house: House, data: st.DataObject) -> None:
    token = house.signer(GATEWAY).call_token(CHATD, ADA)
    at = data.draw(st.integers(0, len(token) - 1))
    put = data.draw(st.sampled_from("ABCxyz059-_."))
    changed = token[:at] + put + token[at + 1 :]
    # The last character of a base64 text may hold bits that mean nothing.
    if changed == token or at == len(token) - 1:
        return

    with pytest.raises(Unauthenticated):
        house.guard().admit(SEND, bearer(changed), None)


def test_another_algorithm_is_refused_before_any_key_is_used(house: House) -> None:
    guard = house.guard()
    key = house.keys[GATEWAY]
    secret = base64.b64encode(key.public).decode()
    claims = {"iss": "gateway", "aud": ["chatd"], "iat": 0, "exp": 2**33, "typ": "call"}
    mac = jwt.encode(claims, secret, algorithm="HS256", headers={"kid": key.kid})
    none = jwt.encode(claims, "", algorithm="none", headers={"kid": key.kid})

    for token in (mac, none):
        assert reason_of(guard, SEND, bearer(token), None) is RefusalReason.TOKEN_ALGORITHM


def forge(key: SigningKey, changes: Mapping[str, object], named: SigningKey | None = None) -> str:
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


def test_a_key_that_is_not_trusted_is_refused(house: House) -> None:
    guard = house.guard()
    stranger = SigningKey.generate()
    unknown = bearer(forge(stranger, {}))
    borrowed = bearer(forge(stranger, {}, named=house.keys[GATEWAY]))

    assert reason_of(guard, SEND, unknown, None) is RefusalReason.TOKEN_KEY_UNKNOWN
    assert reason_of(guard, SEND, borrowed, None) is RefusalReason.TOKEN_SIGNATURE


def test_a_service_cannot_sign_in_the_name_of_another(house: House) -> None:
    guard = house.guard()
    token = bearer(forge(house.keys[TOOLRUNNER], {}))

    assert reason_of(guard, SEND, token, None) is RefusalReason.TOKEN_ISSUER


def test_only_the_gateway_issues_service_tokens(house: House) -> None:
    guard = house.guard()
    token = house.signer(TOOLRUNNER).service_token(
        "t", "mine", ADA, ("chats:write",), house.clock.now() + timedelta(days=1)
    )

    assert reason_of(guard, SEND, bearer(token), None) is RefusalReason.TOKEN_ISSUER


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"aud": ["toolrunner"]}, RefusalReason.TOKEN_AUDIENCE),
        ({"aud": []}, RefusalReason.TOKEN_AUDIENCE),
        ({"aud": "chatd"}, RefusalReason.TOKEN_MALFORMED),
        ({"aud": None}, RefusalReason.TOKEN_MALFORMED),
        ({"exp": None}, RefusalReason.TOKEN_MALFORMED),
        ({"exp": 2**70}, RefusalReason.TOKEN_MALFORMED),
        ({"exp": "tomorrow"}, RefusalReason.TOKEN_MALFORMED),
        ({"iat": -1}, RefusalReason.TOKEN_MALFORMED),
        ({"iss": "somebody"}, RefusalReason.TOKEN_MALFORMED),
        ({"typ": None}, RefusalReason.TOKEN_MALFORMED),
        ({"role": None}, RefusalReason.TOKEN_MALFORMED),
        ({"sub": None}, RefusalReason.TOKEN_MALFORMED),
        ({"sub": ""}, RefusalReason.TOKEN_MALFORMED),
        ({"role": "root"}, RefusalReason.TOKEN_MALFORMED),
        ({"typ": "service"}, RefusalReason.TOKEN_MALFORMED),
        ({"exp": 1}, RefusalReason.TOKEN_EXPIRED),
        ({"iat": 2**33}, RefusalReason.TOKEN_NOT_YET_VALID),
    ],
)
def test_claims_that_do_not_hold_are_refused(
    house: House, changes: dict[str, object], reason: RefusalReason
) -> None:
    guard = house.guard()
    token = bearer(forge(house.keys[GATEWAY], changes))

    assert reason_of(guard, SEND, token, None) is reason


def test_a_clock_a_little_ahead_is_forgiven(house: House) -> None:
    now_s = int(house.clock.now().timestamp())
    guard = house.guard()

    assert (
        guard.admit(SEND, bearer(forge(house.keys[GATEWAY], {"iat": now_s + 5})), None).user == ADA
    )
    late = bearer(forge(house.keys[GATEWAY], {"iat": now_s + 6}))
    assert reason_of(guard, SEND, late, None) is RefusalReason.TOKEN_NOT_YET_VALID


@pytest.mark.parametrize("offset_s", [3600, -3600])
def test_a_call_token_refused_because_of_time_is_told_the_time(house: House, offset_s: int) -> None:
    token = bearer(house.signer(GATEWAY).call_token(CHATD, ADA, offset_s))

    with pytest.raises(Unauthenticated) as caught:
        house.guard().admit(SEND, token, None)
    ahead, behind = RefusalReason.TOKEN_NOT_YET_VALID, RefusalReason.TOKEN_EXPIRED
    assert caught.value.reason is (ahead if offset_s > 0 else behind)
    assert caught.value.time == house.clock.now()


def test_whoever_is_refused_for_another_reason_is_not_told_the_time(house: House) -> None:
    with pytest.raises(Unauthenticated) as caught:
        house.guard().admit(SEND, bearer(forge(house.keys[GATEWAY], {"aud": ["gateway"]})), None)
    assert caught.value.time is None


def test_a_service_token_is_good_by_a_clock_that_is_behind(house: House) -> None:
    expires_at = house.clock.now() + timedelta(days=90)
    early = Signer(GATEWAY, house.keys[GATEWAY], FakeClock(house.clock.now() + timedelta(hours=1)))
    token = early.service_token("token-1", "nightly", ADA, ("chats:write",), expires_at)

    assert house.guard().admit(SEND, bearer(token), None).name == "nightly"


def test_a_cached_token_still_expires(house: House) -> None:
    guard = house.guard()
    token = bearer(house.signer(GATEWAY).call_token(CHATD, ADA))

    guard.admit(SEND, token, None)
    house.clock.advance(59.9)
    guard.admit(SEND, token, None)
    house.clock.advance(0.1)
    assert reason_of(guard, SEND, token, None) is RefusalReason.TOKEN_EXPIRED


def test_the_cache_is_bounded_and_forgets_what_expired(house: House) -> None:
    guard = house.guard()
    now_s = int(house.clock.now().timestamp())
    key = house.keys[GATEWAY]
    for number in range(CACHED_TOKENS_MAX + 2):
        guard.admit(SEND, bearer(forge(key, {"sub": f"user-{number}"})), None)
    assert len(guard._cache) == CACHED_TOKENS_MAX

    house.clock.advance(60)
    fresh = forge(key, {"iat": now_s + 60, "exp": now_s + 120})
    guard.admit(SEND, bearer(fresh), None)
    assert list(guard._cache) == [fresh]


def test_a_methods_rule_is_looked_up_once(house: House) -> None:
    guard = house.guard()
    for _ in range(3):
        guard.admit(SEND, bearer(house.signer(GATEWAY).call_token(CHATD, ADA)), None)

    assert house.rules_asked == [SEND]


def test_revocation_is_asked_on_every_call(house: House) -> None:
    guard = house.guard()
    token = bearer(house.service_token())
    guard.admit(SEND, token, None)
    house.revocations.revoke("token-1")

    assert reason_of(guard, SEND, token, None) is RefusalReason.TOKEN_REVOKED
    house.revocations.replace(("another",))
    assert guard.admit(SEND, token, None).token_id == "token-1"


def test_service_tokens_are_refused_until_revocations_are_known(house: House) -> None:
    house.revocations = InMemoryRevocations()
    guard = house.guard()
    token = bearer(house.service_token())
    own = bearer(house.signer(GATEWAY).call_token(CHATD, ADA))

    house.revocations.revoke("another")
    assert reason_of(guard, SEND, token, None) is RefusalReason.REVOCATIONS_UNKNOWN
    assert guard.admit(SEND, own, None).user == ADA
    house.revocations.replace(())
    assert guard.admit(SEND, token, None).name == "nightly"


def test_a_service_token_expires(house: House) -> None:
    guard = house.guard()
    token = bearer(house.service_token())
    guard.admit(SEND, token, None)
    house.clock.advance(90 * 24 * 3600)

    with pytest.raises(Unauthenticated) as caught:
        guard.admit(SEND, token, None)
    assert (caught.value.reason, caught.value.time) == (RefusalReason.TOKEN_EXPIRED, None)


def test_a_service_token_is_no_good_at_toolrunner(house: House) -> None:
    trust = Trust(house.file.path, house.clock)
    guard = Guard(TOOLRUNNER, trust, house.revocations, house.clock, False, rules=house.rule)
    token = bearer(house.service_token())

    assert reason_of(guard, SEND, token, None) is RefusalReason.TOKEN_AUDIENCE


def test_the_certificate_must_be_that_of_the_tokens_service(house: House) -> None:
    guard = house.guard(peers_by_certificate=True)
    token = bearer(house.signer(GATEWAY).call_token(CHATD, ADA))

    assert guard.admit(SEND, token, GATEWAY).service is GATEWAY
    for peer in (None, TOOLRUNNER):
        assert reason_of(guard, SEND, token, peer) is RefusalReason.PEER_MISMATCH


def test_a_service_token_on_one_of_our_services_connections_is_refused(house: House) -> None:
    guard = house.guard(peers_by_certificate=True)
    token = bearer(house.service_token())

    assert guard.admit(SEND, token, None).name == "nightly"
    assert reason_of(guard, SEND, token, MCPGATEWAY) is RefusalReason.PEER_MISMATCH


def test_keys_rotate_without_a_refused_call(house: House) -> None:
    guard = house.guard()
    old_signer = house.signer(GATEWAY)
    old_key, new_key = house.keys[GATEWAY], SigningKey.generate()
    old_token = bearer(old_signer.call_token(CHATD, ADA))
    guard.admit(SEND, old_token, None)

    house.clock.advance(2)
    house.file.add_key(GATEWAY, new_key)
    new_signer = Signer(GATEWAY, new_key, house.clock)
    guard.admit(SEND, bearer(new_signer.call_token(CHATD, ADA)), None)
    house.file.retire_key(old_key.kid, now=house.clock.now(), overlap_s=60)
    guard.admit(SEND, old_token, None)

    house.clock.advance(60)
    late = bearer(old_signer.call_token(CHATD, ADA))
    assert reason_of(guard, SEND, late, None) is RefusalReason.TOKEN_KEY_UNKNOWN
    guard.admit(SEND, bearer(new_signer.call_token(CHATD, ADA)), None)


def test_a_retired_key_ends_even_cached_service_tokens(house: House) -> None:
    guard = house.guard()
    token = bearer(house.service_token())
    guard.admit(SEND, token, None)
    house.file.retire_key(house.keys[GATEWAY].kid, now=house.clock.now(), overlap_s=0)

    house.clock.advance(60)
    assert reason_of(guard, SEND, token, None) is RefusalReason.TOKEN_KEY_UNKNOWN


def test_every_refusal_says_what_to_do() -> None:
    assert all(str(Unauthenticated(reason)) for reason in RefusalReason)
