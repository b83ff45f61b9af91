"""Conversion of servers between protos and domain values."""

from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeVar

from mcpgateway.servers.domain import (
    ApprovalPolicy,
    AuthKind,
    Availability,
    Credentials,
    Limits,
    OAuthSettings,
    Server,
    ServerSettings,
    Transport,
)
from parley.api.mcp.v1 import server_pb2

E = TypeVar("E", bound=StrEnum)

_PREFIXES: dict[type[StrEnum], tuple[Any, str]] = {
    Transport: (server_pb2.Transport, "TRANSPORT_"),
    AuthKind: (server_pb2.AuthKind, "AUTH_KIND_"),
    Availability: (server_pb2.Availability, "AVAILABILITY_"),
    ApprovalPolicy: (server_pb2.ApprovalPolicy, "APPROVAL_POLICY_"),
}


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


def settings_from_proto(
    message: server_pb2.McpServerSettings,
) -> tuple[ServerSettings, dict[str, str]]:
    """Convert the settings; also return a problem for each unspecified enum field."""
    transport = enum_from_proto(Transport, message.transport)
    auth_kind = enum_from_proto(AuthKind, message.auth_kind)
    availability = enum_from_proto(Availability, message.availability)
    choices = {"transport": transport, "auth_kind": auth_kind, "availability": availability}
    problems = {
        f"settings.{name}": "choose one" for name, choice in choices.items() if choice is None
    }
    settings = ServerSettings(
        slug=message.slug,
        display_name=message.display_name,
        url=message.url,
        transport=transport or Transport.STREAMABLE_HTTP,
        auth_kind=auth_kind or AuthKind.NONE,
        description=message.description,
        icon=message.icon,
        oauth=_oauth_from_proto(message.oauth) if message.HasField("oauth") else None,
        api_key_header=message.api_key_header,
        tool_allow_list=tuple(message.tool_allow_list),
        tool_deny_list=tuple(message.tool_deny_list),
        availability=availability or Availability.DEFAULT_OFF,
        is_enabled=message.is_enabled,
        allow_in_plan_mode=message.allow_in_plan_mode,
        is_trusted=message.is_trusted,
        is_stateful=message.is_stateful,
        approval_policy=enum_from_proto(ApprovalPolicy, message.approval_policy)
        or ApprovalPolicy.DESTRUCTIVE,
        limits=_limits_from_proto(message.limits),
    )
    return settings, problems


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


def server_to_proto(server: Server, *, is_full: bool) -> server_pb2.McpServer:
    """Convert a server to its proto; without `is_full` the fields for admins are left out."""
    kind = server.settings.auth_kind
    message = server_pb2.McpServer(
        server_id=server.id,
        version=server.version,
        settings=_full_settings(server.settings) if is_full else _shown_settings(server.settings),
        authorization_status=(
            server_pb2.AUTHORIZATION_STATUS_NOT_CONNECTED
            if kind is AuthKind.OAUTH2
            else server_pb2.AUTHORIZATION_STATUS_NOT_REQUIRED
        ),
    )
    message.created_at.FromDatetime(server.created_at)
    message.updated_at.FromDatetime(server.updated_at)
    if is_full:
        stored = message.stored_credentials
        stored.SetInParent()
        stored.has_oauth_client_secret = server.has_credentials and kind is AuthKind.OAUTH2
        stored.has_api_key = server.has_credentials and kind is AuthKind.API_KEY
        if kind is AuthKind.CUSTOM_HEADERS:
            stored.custom_header_names.extend(server.header_names)
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
