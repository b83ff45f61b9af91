"""Every gRPC method times every caller: without a token, each service, for each role, a program."""

import importlib
from datetime import timedelta
from pathlib import Path

import pytest
from google.protobuf.descriptor import MethodDescriptor

import parley.api
from parley.api.identity.v1 import access_pb2
from parley.identity import Guard, RefusalReason, Refused, Role, ServiceName, Trust, User, UserId
from support.rpc.guarded_house import CHATD, GATEWAY, House, bearer, reason_of

GENERATED = Path(parley.api.__path__[0])
SERVICES = {
    ServiceName.GATEWAY: access_pb2.SERVICE_GATEWAY,
    ServiceName.CHATD: access_pb2.SERVICE_CHATD,
    ServiceName.TOOLRUNNER: access_pb2.SERVICE_TOOLRUNNER,
    ServiceName.MCPGATEWAY: access_pb2.SERVICE_MCPGATEWAY,
}
NO_SCOPE = "nothing:at-all"


def methods() -> list[MethodDescriptor]:
    names = sorted(
        ".".join(("parley.api", *path.relative_to(GENERATED).with_suffix("").parts))
        for path in GENERATED.rglob("*_service_pb2.py")
    )
    return [
        method
        for name in names
        for service in importlib.import_module(name).DESCRIPTOR.services_by_name.values()
        for method in service.methods
    ]


def name_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def is_admitted(guard: Guard, method: str, token: str) -> bool:
    try:
        guard.admit(method, bearer(token), None)
    except Refused:
        return False
    return True


@pytest.fixture
def guard(house: House) -> Guard:
    """Return a guard with the rules of the protos; which service has it makes no difference."""
    return Guard(CHATD, Trust(house.file.path, house.clock), house.revocations, house.clock, False)


def test_g2_every_method_refuses_who_has_no_token(house: House, guard: Guard) -> None:
    wrong = [
        name_of(method)
        for method in methods()
        if reason_of(guard, name_of(method), None, None) is not RefusalReason.TOKEN_MISSING
    ]

    assert wrong == []


@pytest.mark.parametrize("service", list(ServiceName))
def test_g2_every_method_admits_the_services_that_its_proto_names_and_no_other(
    house: House, guard: Guard, service: ServiceName
) -> None:
    signer = house.signer(service)
    alone = signer.call_token(CHATD, None)
    for_owner = signer.call_token(CHATD, User(UserId("ada"), Role.OWNER))
    wrong = []
    for method in methods():
        declared = method.GetOptions().Extensions[access_pb2.callers]
        expected = (
            SERVICES[service] in declared.services,
            SERVICES[service] in declared.for_users,
        )
        name = name_of(method)
        found = (is_admitted(guard, name, alone), is_admitted(guard, name, for_owner))
        if found != expected:
            wrong.append((name, expected, found))

    assert wrong == []


def _is_enough(method: MethodDescriptor, scope: str) -> bool:
    declared = method.GetOptions().Extensions[access_pb2.callers]
    return declared.any_scope or declared.scope == scope


def test_any_scope_is_enough_to_read_oneself_and_for_nothing_else() -> None:
    declared = {
        name_of(method): method.GetOptions().Extensions[access_pb2.callers] for method in methods()
    }
    assert [name for name, rule in declared.items() if rule.any_scope] == [
        "/parley.api.identity.v1.UserService/GetMe"
    ]


def test_g2_a_program_needs_the_scope_of_the_method(house: House, guard: Guard) -> None:
    owner = User(UserId("ada"), Role.OWNER)
    expires_at = house.clock.now() + timedelta(days=1)

    def token(scope: str) -> str:
        signer = house.signer(GATEWAY)
        return signer.service_token(f"token-{scope}", "nightly", owner, (scope,), expires_at)

    scopes = {each.GetOptions().Extensions[access_pb2.callers].scope for each in methods()} - {""}
    tokens = {scope: token(scope) for scope in scopes | {NO_SCOPE}}
    wrong = [
        (name_of(method), scope)
        for method in methods()
        for scope, given in tokens.items()
        if is_admitted(guard, name_of(method), given) is not _is_enough(method, scope)
    ]

    assert len(scopes) > 5
    assert wrong == []
