"""The routes that the protos declare, with their access rules."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

from google.protobuf.descriptor import FileDescriptor

from gateway.api.transcoded_route import Calls, TranscodedRoute
from gateway.api.user_names import NameOf
from gateway.http.application import UserRoute
from gateway.http.limits.admission import Duration
from gateway.http.route_access import PAGES, Access, Need
from parley.api.chat.v1 import (
    action_service_pb2,
    approval_service_pb2,
    break_glass_service_pb2,
    chat_service_pb2,
    context_service_pb2,
    file_service_pb2,
    goal_service_pb2,
    hook_service_pb2,
    model_service_pb2,
    monitor_service_pb2,
    push_service_pb2,
    race_service_pb2,
    retention_service_pb2,
    revert_service_pb2,
    schedule_service_pb2,
    settings_service_pb2,
    stream_service_pb2,
    usage_service_pb2,
)
from parley.api.contract.v1 import options_pb2
from parley.api.identity.v1 import (
    account_export_service_pb2,
    api_key_service_pb2,
    audit_log_service_pb2,
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
    workspace_server_service_pb2,
    workspace_service_pb2,
)
from parley.contract.bindings import HttpBinding, bindings_of
from parley.identity import AUDIENCES

FILES: Final[tuple[FileDescriptor, ...]] = (
    approval_service_pb2.DESCRIPTOR,
    break_glass_service_pb2.DESCRIPTOR,
    chat_service_pb2.DESCRIPTOR,
    context_service_pb2.DESCRIPTOR,
    stream_service_pb2.DESCRIPTOR,
    file_service_pb2.DESCRIPTOR,
    hook_service_pb2.DESCRIPTOR,
    goal_service_pb2.DESCRIPTOR,
    model_service_pb2.DESCRIPTOR,
    monitor_service_pb2.DESCRIPTOR,
    push_service_pb2.DESCRIPTOR,
    race_service_pb2.DESCRIPTOR,
    retention_service_pb2.DESCRIPTOR,
    revert_service_pb2.DESCRIPTOR,
    schedule_service_pb2.DESCRIPTOR,
    settings_service_pb2.DESCRIPTOR,
    action_service_pb2.DESCRIPTOR,
    usage_service_pb2.DESCRIPTOR,
    user_service_pb2.DESCRIPTOR,
    group_service_pb2.DESCRIPTOR,
    token_service_pb2.DESCRIPTOR,
    sign_in_service_pb2.DESCRIPTOR,
    session_service_pb2.DESCRIPTOR,
    account_export_service_pb2.DESCRIPTOR,
    api_key_service_pb2.DESCRIPTOR,
    linked_identity_service_pb2.DESCRIPTOR,
    oidc_issuer_service_pb2.DESCRIPTOR,
    second_factor_service_pb2.DESCRIPTOR,
    audit_log_service_pb2.DESCRIPTOR,
    workspace_service_pb2.DESCRIPTOR,
    workspace_access_service_pb2.DESCRIPTOR,
    workspace_server_service_pb2.DESCRIPTOR,
    secret_service_pb2.DESCRIPTOR,
    node_service_pb2.DESCRIPTOR,
    server_service_pb2.DESCRIPTOR,
    tool_service_pb2.DESCRIPTOR,
    authorization_service_pb2.DESCRIPTOR,
)
DURATIONS: Final[Mapping[int, Duration]] = {
    options_pb2.DURATION_UNSPECIFIED: Duration.SHORT,
    options_pb2.DURATION_SHORT: Duration.SHORT,
    options_pb2.DURATION_LONG_RUNNING: Duration.LONG_RUNNING,
    options_pb2.DURATION_STREAM: Duration.STREAM,
}


@cache
def bindings() -> tuple[HttpBinding, ...]:
    """Return all bindings of the protos."""
    services = (service for file in FILES for service in file.services_by_name.values())
    return bindings_of(services)


@cache
def access_table() -> Mapping[tuple[str, str], Access]:
    """Return the access rule of every route, by its method and path."""
    declared = {
        (each.verb, each.path): Access(
            each.options.summary,
            need=Need.SIGN_IN if AUDIENCES[each.options.audience] else Need.NOTHING,
            roles=AUDIENCES[each.options.audience],
            method=each.call_path,
            duration=DURATIONS[each.options.duration],
        )
        for each in bindings()
    }
    return {**PAGES, **declared}


def contract_routes(
    calls: Mapping[str, Calls], *, new_id: Callable[[], str], name_of: NameOf
) -> tuple[UserRoute, ...]:
    """Return the routes that are one call.

    Args:
        calls: How the methods of a service are called, by its full name.
        new_id: Generates the ids of requests without an Idempotency-Key.
        name_of: Returns the names of users that answers show.
    """
    return tuple(
        _route(binding, calls[binding.method.containing_service.full_name], new_id, name_of)
        for binding in bindings()
        if not binding.options.served_by_gateway
    )


def _route(
    binding: HttpBinding, calls: Calls, new_id: Callable[[], str], name_of: NameOf
) -> UserRoute:
    handler = TranscodedRoute(binding, calls, new_id=new_id, name_of=name_of)
    return UserRoute(
        binding.verb,
        binding.path,
        handler,
        answers_head=not binding.options.no_head,
        body=None if handler.body is None else handler.body.type,
        query=tuple(handler.query),
        conditional=bool(binding.options.if_match_field),
    )
