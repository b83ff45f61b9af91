import pytest
from google.protobuf.descriptor import ServiceDescriptor

from parley.api.chat.v1 import chat_service_pb2, file_service_pb2, stream_service_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2
from parley.identity import CallerRule, Role, ServiceName, rule_of
from support.rpc.declared_methods import SERVICE, declared_file
from support.rpc.undeclared_methods import undeclared_methods


def test_a_rule_is_read_from_the_methods_option() -> None:
    declared_file()

    assert rule_of(f"/{SERVICE}/ForServices") == CallerRule(services=frozenset({ServiceName.CHATD}))
    assert rule_of(f"/{SERVICE}/ForMembers") == CallerRule(
        for_users=frozenset({ServiceName.GATEWAY}),
        roles=frozenset({Role.OWNER, Role.MEMBER}),
        scope="chats:write",
    )


def test_an_unknown_method_has_no_rule() -> None:
    declared_file()

    assert rule_of(f"/{SERVICE}/Missing") is None
    assert rule_of("/nowhere.Service/Method") is None
    assert rule_of("") is None
    assert rule_of("/") is None


def test_methods_that_name_no_caller_are_found() -> None:
    assert undeclared_methods([declared_file()]) == tuple(
        f"/{SERVICE}/{name}"
        for name in ("ForNobody", "ForUnspecified", "ForUnspecifiedRole", "Undeclared")
    )


@pytest.mark.parametrize(
    "service",
    [
        *chat_service_pb2.DESCRIPTOR.services_by_name.values(),
        *file_service_pb2.DESCRIPTOR.services_by_name.values(),
        *stream_service_pb2.DESCRIPTOR.services_by_name.values(),
        *workspace_access_service_pb2.DESCRIPTOR.services_by_name.values(),
    ],
    ids=lambda service: service.name,
)
def test_auditors_never_read_chats(service: ServiceDescriptor) -> None:
    rules = [rule_of(f"/{service.full_name}/{method.name}") for method in service.methods]
    for_users = [rule for rule in rules if rule is not None and rule.for_users]

    assert for_users
    for rule in for_users:
        accepted = {role for role in Role if rule.accepts_role(role)}
        assert accepted == {Role.OWNER, Role.ADMIN, Role.MEMBER}


def test_a_method_without_roles_accepts_the_audience_of_its_route() -> None:
    everyone = rule_of("/parley.api.chat.v1.ModelService/ListModels")
    managers = rule_of("/parley.api.chat.v1.UsageService/ListUsage")

    assert everyone is not None
    assert everyone.roles == frozenset(Role)
    assert managers is not None
    assert managers.roles == {Role.OWNER, Role.ADMIN}
