"""The scopes of service tokens: exactly those that some method requires."""

from collections.abc import Iterable

from google.protobuf.descriptor import FileDescriptor

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
from parley.api.identity.v1 import (
    audit_log_service_pb2,
    group_service_pb2,
    token_service_pb2,
    user_service_pb2,
)
from parley.api.mcp.v1 import (
    authorization_service_pb2,
    runtime_service_pb2,
    server_service_pb2,
    tool_service_pb2,
)
from parley.api.workspace.v1 import (
    node_service_pb2,
    workspace_access_service_pb2,
    workspace_server_service_pb2,
    workspace_service_pb2,
)
from parley.identity import rule_of

FILES: tuple[FileDescriptor, ...] = (
    approval_service_pb2.DESCRIPTOR,
    break_glass_service_pb2.DESCRIPTOR,
    chat_service_pb2.DESCRIPTOR,
    context_service_pb2.DESCRIPTOR,
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
    stream_service_pb2.DESCRIPTOR,
    usage_service_pb2.DESCRIPTOR,
    audit_log_service_pb2.DESCRIPTOR,
    token_service_pb2.DESCRIPTOR,
    user_service_pb2.DESCRIPTOR,
    group_service_pb2.DESCRIPTOR,
    authorization_service_pb2.DESCRIPTOR,
    runtime_service_pb2.DESCRIPTOR,
    server_service_pb2.DESCRIPTOR,
    tool_service_pb2.DESCRIPTOR,
    workspace_access_service_pb2.DESCRIPTOR,
    workspace_server_service_pb2.DESCRIPTOR,
    workspace_service_pb2.DESCRIPTOR,
    node_service_pb2.DESCRIPTOR,
)


def known_scopes(files: Iterable[FileDescriptor] = FILES) -> tuple[str, ...]:
    """Return every scope that a method of `files` declares, in order."""
    rules = (
        rule_of(f"/{service.full_name}/{method.name}")
        for file in files
        for service in file.services_by_name.values()
        for method in service.methods
    )
    return tuple(sorted({rule.scope for rule in rules if rule is not None and rule.scope}))
