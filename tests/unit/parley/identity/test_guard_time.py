"""What time does to tokens: clocks that differ, caching, revocation, keys that are retired."""

from datetime import timedelta

import pytest

from parley.clock import FakeClock
from parley.identity import (
    InMemoryRevocations,
    RefusalReason,
    Signer,
    SigningKey,
    Unauthenticated,
)
from parley.identity import guard as guard_module
from support.rpc.guarded_house import ADA, CHATD, GATEWAY, SEND, House, bearer, forge, reason_of


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


def test_the_cache_is_bounded_and_forgets_what_expired(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Signing thousands of tokens takes longer than all that is tested with them.
    monkeypatch.setattr(guard_module, "CACHED_TOKENS_MAX", 16)
    guard = house.guard()
    now_s = int(house.clock.now().timestamp())
    key = house.keys[GATEWAY]
    for number in range(18):
        guard.admit(SEND, bearer(forge(key, {"sub": f"user-{number}"})), None)
    assert len(guard._cache) == 16

    house.clock.advance(60)
    fresh = forge(key, {"iat": now_s + 60, "exp": now_s + 120})
    guard.admit(SEND, bearer(fresh), None)
    assert list(guard._cache) == [fresh]


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
