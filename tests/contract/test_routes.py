"""What can be asked of Parley over gRPC can be asked over HTTP, by the same people."""

import pytest
from google.protobuf.descriptor import FileDescriptor

from gateway.api.contract import access_table
from gateway.http.route_access import Need
from parley.api.chat.v1 import (
    action_service_pb2,
    approval_service_pb2,
    chat_service_pb2,
    context_service_pb2,
    file_service_pb2,
    model_service_pb2,
    revert_service_pb2,
    settings_service_pb2,
    stream_service_pb2,
    usage_service_pb2,
)
from parley.api.identity.v1 import (
    api_key_service_pb2,
    group_service_pb2,
    linked_identity_service_pb2,
    oidc_issuer_service_pb2,
    second_factor_service_pb2,
    session_service_pb2,
    sign_in_service_pb2,
    token_service_pb2,
    user_service_pb2,
)
from parley.api.mcp.v1 import (
    authorization_service_pb2,
    server_service_pb2,
    tool_service_pb2,
)
from parley.api.workspace.v1 import (
    node_service_pb2,
    secret_service_pb2,
    workspace_access_service_pb2,
    workspace_service_pb2,
)
from parley.identity import Role, ServiceName, rule_of

FILES: tuple[FileDescriptor, ...] = (
    action_service_pb2.DESCRIPTOR,
    approval_service_pb2.DESCRIPTOR,
    chat_service_pb2.DESCRIPTOR,
    context_service_pb2.DESCRIPTOR,
    file_service_pb2.DESCRIPTOR,
    model_service_pb2.DESCRIPTOR,
    revert_service_pb2.DESCRIPTOR,
    settings_service_pb2.DESCRIPTOR,
    stream_service_pb2.DESCRIPTOR,
    usage_service_pb2.DESCRIPTOR,
    user_service_pb2.DESCRIPTOR,
    group_service_pb2.DESCRIPTOR,
    token_service_pb2.DESCRIPTOR,
    sign_in_service_pb2.DESCRIPTOR,
    session_service_pb2.DESCRIPTOR,
    api_key_service_pb2.DESCRIPTOR,
    linked_identity_service_pb2.DESCRIPTOR,
    oidc_issuer_service_pb2.DESCRIPTOR,
    second_factor_service_pb2.DESCRIPTOR,
    workspace_access_service_pb2.DESCRIPTOR,
    workspace_service_pb2.DESCRIPTOR,
    node_service_pb2.DESCRIPTOR,
    secret_service_pb2.DESCRIPTOR,
    server_service_pb2.DESCRIPTOR,
    tool_service_pb2.DESCRIPTOR,
    authorization_service_pb2.DESCRIPTOR,
)
#: Method -> why there is no route that stands for it.
NOT_OVER_HTTP = {
    "BatchGetUsers": "names for services; a page of users has them",
    "BatchGetGroups": "services alone ask what became of groups",
    "RegisterNode": "nodes alone make themselves known",
    "Heartbeat": "nodes alone say that they live",
    "DrainNode": "nodes alone take themselves out",
    "UseSecret": "nodes alone take the values of secrets",
    "BeginAuthorization": "a page sends the browser away, with a cookie",
    "CompleteAuthorization": "a page is what the browser comes back to",
    "WatchRevocations": "services alone follow what is revoked",
}
#: Streams between processes; routes follow chats through them.
STREAMS_BETWEEN_PROCESSES = frozenset(
    method.name
    for service in stream_service_pb2.DESCRIPTOR.services_by_name.values()
    for method in service.methods
) - {"Subscribe", "WatchChats"}


def methods() -> list[str]:
    return [
        f"/{service.full_name}/{method.name}"
        for file in FILES
        for service in file.services_by_name.values()
        for method in service.methods
    ]


@pytest.mark.parametrize("method", methods())
def test_every_method_has_a_route_or_a_reason_why_not(method: str) -> None:
    offered = {access.method for access in access_table().values()}
    name = method.rpartition("/")[2]
    is_excused = name in NOT_OVER_HTTP or name in STREAMS_BETWEEN_PROCESSES

    assert (method in offered) is not is_excused


def test_every_route_behind_a_sign_in_stands_for_a_method() -> None:
    without = [
        route
        for route, access in access_table().items()
        if access.need is Need.SIGN_IN and not access.method
    ]

    assert without == []


def test_no_route_lets_in_whom_its_method_refuses() -> None:
    refused: list[tuple[tuple[str, str], Role]] = []
    for route, access in access_table().items():
        rule = rule_of(access.method) if access.method else None
        if rule is None:
            continue
        if access.need is Need.NOTHING:
            # The gateway calls such a method on its own behalf, before there is a user.
            assert rule.services == {ServiceName.GATEWAY}, route
            continue
        assert ServiceName.GATEWAY in rule.for_users, route
        refused += [(route, role) for role in access.roles if not rule.accepts_role(role)]

    assert refused == []


def test_every_route_tells_its_scope_but_those_that_no_token_may_use() -> None:
    without = [
        route for route, access in access_table().items() if access.method and access.scope is None
    ]

    assert without == [
        ("POST", "/api/v1/break-glass"),
        ("DELETE", "/api/v1/break-glass/{access_id}"),
        ("PATCH", "/api/v1/me"),
        ("POST", "/api/v1/service-tokens"),
        ("DELETE", "/api/v1/service-tokens/{token_id}"),
        ("POST", "/api/v1/sign-in"),
        ("GET", "/api/v1/configuration"),
        ("POST", "/api/v1/sign-in/link"),
        ("POST", "/api/v1/sign-in/link/password"),
        ("POST", "/api/v1/sign-in/second-factor"),
        ("POST", "/api/v1/sign-in/passkey/options"),
        ("POST", "/api/v1/sign-in/passkey"),
        ("GET", "/api/v1/me/sessions"),
        ("DELETE", "/api/v1/me/sessions/{session_id}"),
        ("POST", "/api/v1/sign-out"),
        ("POST", "/api/v1/me/password"),
        ("POST", "/api/v1/users/{user_id}/sign-in-links"),
        ("GET", "/api/v1/users/{user_id}/sign-in-links"),
        ("DELETE", "/api/v1/users/{user_id}/sign-in-links/{link_id}"),
        ("POST", "/api/v1/me/exports"),
        ("POST", "/api/v1/users/{user_id}/exports"),
        ("GET", "/api/v1/me/exports"),
        ("GET", "/api/v1/users/{user_id}/exports"),
        ("GET", "/api/v1/me/exports/{export_id}/archive"),
        ("GET", "/api/v1/users/{user_id}/exports/{export_id}/archive"),
        ("POST", "/api/v1/me/api-keys"),
        ("POST", "/api/v1/users/{user_id}/api-keys"),
        ("GET", "/api/v1/me/api-keys"),
        ("GET", "/api/v1/users/{user_id}/api-keys"),
        ("DELETE", "/api/v1/me/api-keys/{api_key_id}"),
        ("DELETE", "/api/v1/users/{user_id}/api-keys/{api_key_id}"),
        ("GET", "/api/v1/me/linked-identities"),
        ("POST", "/api/v1/me/linked-identities"),
        ("DELETE", "/api/v1/me/linked-identities/{linked_identity_id}"),
        ("GET", "/api/v1/me/second-factors"),
        ("POST", "/api/v1/me/totp"),
        ("POST", "/api/v1/me/totp/confirm"),
        ("POST", "/api/v1/me/recovery-codes"),
        ("POST", "/api/v1/me/totp/remove"),
        ("POST", "/api/v1/users/{user_id}/second-factors/reset"),
        ("POST", "/api/v1/me/passkeys/options"),
        ("POST", "/api/v1/me/passkeys"),
        ("DELETE", "/api/v1/me/passkeys/{passkey_id}"),
    ]
