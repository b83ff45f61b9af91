"""Tokens that a guard refuses: malformed, forged, or signed by who may not."""

import base64
from datetime import timedelta

import jwt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from parley.identity import (
    Guard,
    RefusalReason,
    SigningKey,
    Trust,
    Unauthenticated,
)
from support.rpc.guarded_house import (
    ADA,
    CHATD,
    GATEWAY,
    MCPGATEWAY,
    SEND,
    TOOLRUNNER,
    House,
    bearer,
    forge,
    reason_of,
)


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
