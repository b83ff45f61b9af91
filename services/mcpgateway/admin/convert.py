"""Conversion of servers between protos and domain values."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from google.protobuf.field_mask_pb2 import FieldMask

from mcpgateway.oauth.domain.grants import GrantStatus
from mcpgateway.servers.domain import (
    ApprovalPolicy,
    AuthKind,
    Availability,
    Credentials,
    Limits,
    OAuthSettings,
    PinPolicy,
    Server,
    ServerSettings,
    ToolSearch,
    Transport,
    UserValueSlot,
)
from mcpgateway.servers.errors import InvalidRequest
from mcpgateway.servers.health import Health
from parley.api.mcp.v1 import server_pb2
from parley.api.mcp.v1.error_reason_pb2 import ErrorReason

E = TypeVar("E", bound=StrEnum)

_PREFIXES: dict[type[StrEnum], tuple[Any, str]] = {
    Transport: (server_pb2.Transport, "TRANSPORT_"),
    AuthKind: (server_pb2.AuthKind, "AUTH_KIND_"),
    Availability: (server_pb2.Availability, "AVAILABILITY_"),
    ApprovalPolicy: (server_pb2.ApprovalPolicy, "APPROVAL_POLICY_"),
    PinPolicy: (server_pb2.PinPolicy, "PIN_POLICY_"),
    ToolSearch: (server_pb2.ToolSearch, "TOOL_SEARCH_"),
}


@dataclass(frozen=True, slots=True)
class ServerView:
    """What a caller sees of a server beside its settings.

    Attributes:
        is_full: Whether the caller sees everything.
        own_headers: Headers for which the caller has stored values.
        health: How it did lately, for those who see everything.
        quarantined: How many definitions wait for approval.
        login: The state of the caller's login.
    """

    is_full: bool
    own_headers: tuple[str, ...] = ()
    health: Health | None = None
    quarantined: int = 0
    login: GrantStatus = GrantStatus.NOT_CONNECTED


def enum_from_proto(kind: type[E], number: int) -> E | None:
    """Return the member, or None for an unspecified or unknown number."""
    enum, prefix = _PREFIXES[kind]
    if number not in enum.values():
        return None
    name = enum.Name(number).removeprefix(prefix)
    return kind[name] if name in kind.__members__ else None


def enum_to_proto(member: StrEnum) -> Any:
    """Return the member's number."""
    enum, prefix = _PREFIXES[type(member)]
    return enum.Value(prefix + member.name)


def settings_from_proto(message: server_pb2.McpServerSettings) -> ServerSettings:
    """Convert the settings; unspecified choices become the defaults of new servers."""
    return ServerSettings(
        slug=message.slug,
        display_name=message.display_name or message.slug,
        url=message.url,
        transport=enum_from_proto(Transport, message.transport) or Transport.STREAMABLE_HTTP,
        auth_kind=enum_from_proto(AuthKind, message.auth_kind) or AuthKind.NONE,
        description=message.description,
        icon=message.icon,
        oauth=_oauth_from_proto(message.oauth) if message.HasField("oauth") else None,
        api_key_header=message.api_key_header,
        tool_allow_list=tuple(message.tool_allow_list),
        tool_deny_list=tuple(message.tool_deny_list),
        availability=enum_from_proto(Availability, message.availability)
        or Availability.DEFAULT_OFF,
        is_enabled=message.is_enabled,
        allow_in_plan_mode=message.allow_in_plan_mode,
        is_trusted=message.is_trusted,
        is_stateful=message.is_stateful,
        approval_policy=enum_from_proto(ApprovalPolicy, message.approval_policy)
        or ApprovalPolicy.DESTRUCTIVE,
        limits=_limits_from_proto(message.limits),
        user_ids=tuple(dict.fromkeys(message.user_ids)),
        group_ids=tuple(dict.fromkeys(message.group_ids)),
        is_required=message.is_required,
        pin_policy=enum_from_proto(PinPolicy, message.pin_policy) or PinPolicy.QUARANTINE,
        user_values=tuple(
            UserValueSlot(slot.header, slot.description) for slot in message.user_values
        ),
        tool_search=enum_from_proto(ToolSearch, message.tool_search) or ToolSearch.AUTOMATIC,
    )


def merged_settings(
    stored: ServerSettings, given: server_pb2.McpServerSettings, paths: Sequence[str]
) -> ServerSettings:
    """Return the stored settings with those that a mask names replaced.

    Settings of another kind of authorization go with a change of the kind.

    Raises:
        InvalidRequest: A path names no setting.
    """
    message = _full_settings(stored)
    mask = FieldMask(paths=paths)
    unknown = [path for path in paths if not _is_setting(path)]
    if unknown:
        raise InvalidRequest(
            {f"update_mask.paths[{paths.index(path)}]": f"{path} is no setting" for path in unknown}
        )
    mask.MergeMessage(given, message, replace_message_field=True, replace_repeated_field=True)
    settings = settings_from_proto(message)
    if settings.auth_kind is stored.auth_kind:
        return settings
    is_oauth, is_key = (
        settings.auth_kind is AuthKind.OAUTH2,
        settings.auth_kind is AuthKind.API_KEY,
    )
    return replace(
        settings,
        oauth=settings.oauth if is_oauth or "oauth" in paths else None,
        api_key_header=settings.api_key_header if is_key or "api_key_header" in paths else "",
    )


def _is_setting(path: str) -> bool:
    return FieldMask(paths=[path]).IsValidForDescriptor(server_pb2.McpServerSettings.DESCRIPTOR)


def credentials_from_proto(
    message: server_pb2.McpServerCredentials, settings: ServerSettings
) -> Credentials:
    """Convert the secrets to the headers of requests."""
    match message.WhichOneof("secret"):
        case "api_key":
            if settings.api_key_header:
                return Credentials({settings.api_key_header: message.api_key})
            return Credentials({"Authorization": f"Bearer {message.api_key}"})
        case "custom_headers":
            return Credentials(dict(message.custom_headers.headers))
        case "oauth_client_secret":
            return Credentials(oauth_client_secret=message.oauth_client_secret)
        case _:
            return Credentials()


def server_to_proto(server: Server, view: ServerView) -> server_pb2.McpServer:
    """Convert a server to its proto, as much of it as the caller sees."""
    kind, settings = server.settings.auth_kind, server.settings
    message = server_pb2.McpServer(
        server_id=server.id,
        version=server.version,
        settings=_full_settings(settings) if view.is_full else _shown_settings(settings),
        authorization_status=_authorization_status(settings, view),
        own_value_headers=view.own_headers,
        quarantined_tool_count=view.quarantined,
    )
    message.created_at.FromDatetime(server.created_at)
    message.updated_at.FromDatetime(server.updated_at)
    if view.health is not None:
        message.health.CopyFrom(_health_to_proto(view.health))
    if view.is_full:
        stored = message.stored_credentials
        stored.SetInParent()
        stored.has_oauth_client_secret = server.has_credentials and kind is AuthKind.OAUTH2
        stored.has_api_key = server.has_credentials and kind is AuthKind.API_KEY
        if kind is AuthKind.CUSTOM_HEADERS:
            stored.custom_header_names.extend(server.header_names)
    return message


def _authorization_status(
    settings: ServerSettings, view: ServerView
) -> "server_pb2.AuthorizationStatus.ValueType":
    if any(slot.header not in view.own_headers for slot in settings.user_values):
        return server_pb2.AUTHORIZATION_STATUS_MISSING_USER_VALUES
    if settings.auth_kind is AuthKind.OAUTH2:
        return server_pb2.AuthorizationStatus.Value(f"AUTHORIZATION_STATUS_{view.login}")
    return server_pb2.AUTHORIZATION_STATUS_NOT_REQUIRED


def _health_to_proto(health: Health) -> server_pb2.McpServerHealth:
    reason = "UNSPECIFIED" if health.reason is None else health.reason.value
    message = server_pb2.McpServerHealth(
        state=server_pb2.ServerState.Value(f"SERVER_STATE_{health.state.name}"),
        reason=ErrorReason.Value(f"ERROR_REASON_{reason}"),
        detail=health.detail,
        tool_count=health.tool_count,
    )
    if health.last_ok_at is not None:
        message.last_ok_at.FromDatetime(health.last_ok_at)
    if health.last_error_at is not None:
        message.last_error_at.FromDatetime(health.last_error_at)
    return message


def _shown_settings(settings: ServerSettings) -> server_pb2.McpServerSettings:
    return server_pb2.McpServerSettings(
        slug=settings.slug,
        display_name=settings.display_name,
        description=settings.description,
        icon=settings.icon,
        auth_kind=enum_to_proto(settings.auth_kind),
        availability=enum_to_proto(settings.availability),
        is_enabled=settings.is_enabled,
        allow_in_plan_mode=settings.allow_in_plan_mode,
        user_values=[
            server_pb2.UserValueSlot(header=slot.header, description=slot.description)
            for slot in settings.user_values
        ],
    )


def _full_settings(settings: ServerSettings) -> server_pb2.McpServerSettings:
    message = _shown_settings(settings)
    message.transport = enum_to_proto(settings.transport)
    message.url = settings.url
    message.api_key_header = settings.api_key_header
    message.tool_allow_list.extend(settings.tool_allow_list)
    message.tool_deny_list.extend(settings.tool_deny_list)
    message.is_trusted = settings.is_trusted
    message.is_stateful = settings.is_stateful
    message.approval_policy = enum_to_proto(settings.approval_policy)
    message.user_ids.extend(settings.user_ids)
    message.group_ids.extend(settings.group_ids)
    message.is_required = settings.is_required
    message.pin_policy = enum_to_proto(settings.pin_policy)
    message.tool_search = enum_to_proto(settings.tool_search)
    for field in fields(Limits):
        setattr(message.limits, field.name, getattr(settings.limits, field.name))
    if settings.oauth is not None:
        oauth = settings.oauth
        message.oauth.CopyFrom(
            server_pb2.OAuthSettings(
                client_id=oauth.client_id,
                issuer=oauth.issuer,
                authorization_url=oauth.authorization_url,
                token_url=oauth.token_url,
                revocation_url=oauth.revocation_url,
                scopes=oauth.scopes,
            )
        )
    return message


def _limits_from_proto(message: server_pb2.McpServerLimits) -> Limits:
    """Return the limits; a zero means the default."""
    given = {field.name: getattr(message, field.name) for field in fields(Limits)}
    return Limits(**{name: value for name, value in given.items() if value})


def _oauth_from_proto(message: server_pb2.OAuthSettings) -> OAuthSettings:
    return OAuthSettings(
        client_id=message.client_id,
        issuer=message.issuer,
        authorization_url=message.authorization_url,
        token_url=message.token_url,
        revocation_url=message.revocation_url,
        scopes=tuple(message.scopes),
    )
