"""The value types of MCP servers and their tools."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final, NewType

ServerId = NewType("ServerId", str)

#: Of a tool without its texts.
TOOL_BYTES: Final = 1024


class Transport(StrEnum):
    """The transport to a server."""

    STREAMABLE_HTTP = "streamable_http"
    SSE = "sse"


class AuthKind(StrEnum):
    """How requests to a server are authorized."""

    NONE = "none"
    OAUTH2 = "oauth2"
    API_KEY = "api_key"
    CUSTOM_HEADERS = "custom_headers"


class Availability(StrEnum):
    """Which chats use a server."""

    FORCE_ON = "force_on"
    DEFAULT_ON = "default_on"
    DEFAULT_OFF = "default_off"


class ApprovalPolicy(StrEnum):
    """When a user has to approve a call."""

    NEVER = "never"
    DESTRUCTIVE = "destructive"
    ALWAYS = "always"


class PinPolicy(StrEnum):
    """What happens to tools whose definitions change."""

    OFF = "off"
    QUARANTINE = "quarantine"


class ToolSearch(StrEnum):
    """When a model searches for the tools of a server instead of being offered all."""

    AUTOMATIC = "automatic"
    ALWAYS = "always"
    NEVER = "never"


class ServerState(StrEnum):
    """The state of a server, for one caller."""

    READY = "ready"
    NEEDS_AUTHORIZATION = "needs_authorization"
    UNAVAILABLE = "unavailable"
    MISCONFIGURED = "misconfigured"
    EXCLUDED = "excluded"


class Reason(StrEnum):
    """Why an operation on a server or a call failed; names are those of the proto."""

    SERVER_NOT_FOUND = "SERVER_NOT_FOUND"
    SERVER_DISABLED = "SERVER_DISABLED"
    MISCONFIGURED = "MISCONFIGURED"
    ADDRESS_BLOCKED = "ADDRESS_BLOCKED"
    TOOL_NOT_FOUND = "TOOL_NOT_FOUND"
    PLAN_MODE_DENIED = "PLAN_MODE_DENIED"
    TOOL_QUARANTINED = "TOOL_QUARANTINED"
    GATEWAY_LOST = "GATEWAY_LOST"
    CANCELLED = "CANCELLED"
    NEEDS_CONNECT = "NEEDS_CONNECT"
    NEEDS_RECONNECT = "NEEDS_RECONNECT"
    INSUFFICIENT_SCOPE = "INSUFFICIENT_SCOPE"
    MISSING_USER_VALUES = "MISSING_USER_VALUES"
    CIRCUIT_OPEN = "CIRCUIT_OPEN"
    CONNECT_FAILED = "CONNECT_FAILED"
    CONNECT_TIMEOUT = "CONNECT_TIMEOUT"
    SESSION_LOST = "SESSION_LOST"
    IDLE_TIMEOUT = "IDLE_TIMEOUT"
    CALL_TIMEOUT = "CALL_TIMEOUT"
    RATE_LIMITED = "RATE_LIMITED"
    RESULT_TOO_LARGE = "RESULT_TOO_LARGE"
    PROTOCOL_ERROR = "PROTOCOL_ERROR"
    REQUEST_REFUSED = "REQUEST_REFUSED"


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one server; the defaults are those of the proto."""

    connect_timeout_ms: int = 10_000
    idle_timeout_ms: int = 60_000
    call_timeout_ms: int = 600_000
    result_bytes_max: int = 4 * 1024 * 1024
    calls_max: int = 64
    calls_per_user_max: int = 8


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """OAuth endpoints and client of a server; empty values are discovered."""

    client_id: str = ""
    issuer: str = ""
    authorization_url: str = ""
    token_url: str = ""
    revocation_url: str = ""
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserValueSlot:
    """A header whose value each user gives."""

    header: str
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSettings:
    """The settings of a server that an admin chooses, without secrets."""

    slug: str
    display_name: str
    url: str
    transport: Transport = Transport.STREAMABLE_HTTP
    auth_kind: AuthKind = AuthKind.NONE
    description: str = ""
    icon: str = ""
    oauth: OAuthSettings | None = None
    api_key_header: str = ""
    tool_allow_list: tuple[str, ...] = ()
    tool_deny_list: tuple[str, ...] = ()
    availability: Availability = Availability.DEFAULT_OFF
    is_enabled: bool = False
    allow_in_plan_mode: bool = False
    is_trusted: bool = False
    is_stateful: bool = False
    approval_policy: ApprovalPolicy = ApprovalPolicy.DESTRUCTIVE
    limits: Limits = Limits()
    user_ids: tuple[str, ...] = ()
    group_ids: tuple[str, ...] = ()
    is_required: bool = False
    pin_policy: PinPolicy = PinPolicy.QUARANTINE
    user_values: tuple[UserValueSlot, ...] = ()
    tool_search: ToolSearch = ToolSearch.AUTOMATIC

    @property
    def is_restricted(self) -> bool:
        """Whether only some users may use it."""
        return bool(self.user_ids or self.group_ids)

    @property
    def login_terms(self) -> tuple[str, ...]:
        """What the logins of users depend on: other terms make them worthless."""
        oauth = self.oauth or OAuthSettings()
        endpoints = (oauth.authorization_url, oauth.token_url, oauth.revocation_url)
        return (self.url, self.auth_kind, oauth.client_id, oauth.issuer, *endpoints)

    def allows_tool(self, tool: str) -> bool:
        """Return whether the lists allow `tool`; the deny list takes precedence."""
        if tool in self.tool_deny_list:
            return False
        return not self.tool_allow_list or tool in self.tool_allow_list


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secret of one server: headers of its requests, or its OAuth client secret."""

    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    oauth_client_secret: str = field(default="", repr=False)

    def __bool__(self) -> bool:
        return bool(self.headers or self.oauth_client_secret)


@dataclass(frozen=True, slots=True)
class Server:
    """A stored server, without its secrets."""

    id: ServerId
    version: int
    settings: ServerSettings
    has_credentials: bool
    header_names: tuple[str, ...]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ChatContext:
    """The chat of a request; empty ids if there is none."""

    chat_id: str = ""
    root_chat_id: str = ""
    is_plan_mode: bool = False

    def allows(self, settings: ServerSettings) -> bool:
        """Return whether the chat's mode allows the server."""
        if not self.is_plan_mode:
            return True
        return settings.allow_in_plan_mode and self.chat_id == self.root_chat_id


@dataclass(frozen=True, slots=True)
class Target:
    """A server with the credentials for one user in one chat."""

    server: Server
    headers: Mapping[str, str] = field(repr=False)
    user_id: str
    chat_id: str

    @property
    def catalogue_key(self) -> tuple[str, int, str, str]:
        """Return the key of a catalogue: the server as configured, the user and their identity."""
        return (self.server.id, self.server.version, self.user_id, self._identity)

    @property
    def session_key(self) -> tuple[str, int, str, str, str]:
        """Return the key of a session; users never share one, chats only without state."""
        chat_id = self.chat_id if self.server.settings.is_stateful else ""
        return (*self.catalogue_key, chat_id)

    @property
    def _identity(self) -> str:
        """Return a hash of the headers: other credentials never use the same session."""
        headers = "\0".join(f"{name}\1{value}" for name, value in sorted(self.headers.items()))
        return hashlib.sha256(headers.encode("utf-8", "surrogateescape")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ToolHints:
    """A server's hints about a tool's effects; None if it gives none."""

    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as its server defines it."""

    name: str
    title: str
    description: str
    input_schema_json: bytes
    output_schema_json: bytes
    hints: ToolHints
    digest: str

    @property
    def size_bytes(self) -> int:
        """Return about how many bytes its definition has."""
        texts = len(self.name) + len(self.title) + len(self.description)
        return texts + len(self.input_schema_json) + len(self.output_schema_json)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The tools that one server offered one user at one time.

    Attributes:
        tools: By the server's own names, in its order, before any lists are applied.
        dropped: How many definitions could not be used, or are beyond the limits of a catalogue.
        instructions: The server's instructions for its use.
        ttl_s: The server's TTL of the catalogue; None if it gives none.
    """

    tools: Mapping[str, Tool]
    dropped: int
    instructions: str
    ttl_s: float | None

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""
        tools = self.tools.values()
        return len(self.instructions) + sum(TOOL_BYTES + tool.size_bytes for tool in tools)
