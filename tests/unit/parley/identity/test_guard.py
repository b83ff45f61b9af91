from dataclasses import dataclass
from datetime import timedelta

import pytest

from parley.identity import (
    ANONYMOUS,
    Caller,
    Forbidden,
    RefusalReason,
    Role,
    ServiceName,
    Unauthenticated,
    User,
    UserId,
)
from support.rpc.guarded_house import (
    ADA,
    CHATD,
    GATEWAY,
    REGISTER,
    SEND,
    TOOLRUNNER,
    House,
    bearer,
    reason_of,
)

EVE = User(UserId("eve"), Role.AUDITOR)


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


def test_a_methods_rule_is_looked_up_once(house: House) -> None:
    guard = house.guard()
    for _ in range(3):
        guard.admit(SEND, bearer(house.signer(GATEWAY).call_token(CHATD, ADA)), None)

    assert house.rules_asked == [SEND]


def test_every_refusal_says_what_to_do() -> None:
    assert all(str(Unauthenticated(reason)) for reason in RefusalReason)
