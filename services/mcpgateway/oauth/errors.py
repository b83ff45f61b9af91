"""The errors of logins.

McpError
├── NotOAuth                    the server does not use OAuth
├── NoClient                    no client is configured and none can be registered
├── IssuerFailed                the authorization server fails or answers nonsense
├── PkceUnsupported             the authorization server offers no PKCE with S256
├── FlowExpired                 the flow is unknown or too old
├── FlowConsumed                the flow was completed before
├── FlowMismatch                the flow belongs to another user or browser
├── IssuerMismatch              the answer names another authorization server
├── ConfigSuperseded            an admin changed the server during the flow
└── AuthorizationDeclined       the user or the authorization server declined
"""

from collections.abc import Callable

from mcpgateway.servers.errors import McpError
from parley.rpc import ErrorTable, Problem


class NotOAuth(McpError):
    """The server does not use OAuth."""

    def __init__(self, server_id: str) -> None:
        super().__init__("this MCP server does not use OAuth; there is nothing to connect")
        self.server_id = server_id


class NoClient(McpError):
    """No client is configured, and the authorization server registers none."""

    def __init__(self, server_id: str) -> None:
        super().__init__(
            "the authorization server registers no clients by itself; an admin has to register one "
            "there and set its client id"
        )
        self.server_id = server_id
        self.field = "oauth.client_id"


class IssuerFailed(McpError):
    """The authorization server fails or answers nonsense; the text has nothing of its answer."""

    def __init__(self, issuer: str, problem: str) -> None:
        super().__init__(f"the authorization server cannot be used: {problem}")
        self.issuer = issuer


class PkceUnsupported(McpError):
    """The authorization server offers no PKCE with S256."""

    def __init__(self, issuer: str) -> None:
        super().__init__("the authorization server offers no PKCE with S256")
        self.issuer = issuer


class FlowExpired(McpError):
    """The flow is unknown or too old."""

    def __init__(self) -> None:
        super().__init__("this login was not begun here, or took too long; begin again")


class FlowConsumed(McpError):
    """The flow was completed before."""

    def __init__(self) -> None:
        super().__init__("this login was completed before; begin again")


class FlowMismatch(McpError):
    """The flow belongs to another user or browser."""

    def __init__(self) -> None:
        super().__init__("this login was begun by another user or in another browser; begin again")


class IssuerMismatch(McpError):
    """The answer names another authorization server than the flow."""

    def __init__(self) -> None:
        super().__init__(
            "the answer comes from another authorization server than the one that was asked"
        )


class ConfigSuperseded(McpError):
    """An admin changed the server during the flow."""

    def __init__(self, server_id: str) -> None:
        super().__init__("an admin changed this MCP server meanwhile; begin again")
        self.server_id = server_id


class AuthorizationDeclined(McpError):
    """The user or the authorization server declined.

    Attributes:
        error: The code that the authorization server gave.
    """

    def __init__(self, error: str, description: str) -> None:
        super().__init__(f"the authorization server declined: {description or error}")
        self.error = error


def _told(reason: str, *attributes: str) -> Callable[[McpError], Problem]:
    def tell(error: McpError) -> Problem:
        metadata = {attribute: str(getattr(error, attribute)) for attribute in attributes}
        return Problem.of(reason, str(error), metadata)

    return tell


LOGIN_ERRORS: ErrorTable = {
    NotOAuth: _told("NOT_OAUTH", "server_id"),
    NoClient: _told("MISCONFIGURED", "server_id", "field"),
    IssuerFailed: _told("AUTHORIZATION_SERVER_FAILED", "issuer"),
    PkceUnsupported: _told("PKCE_UNSUPPORTED", "issuer"),
    FlowExpired: _told("FLOW_EXPIRED"),
    FlowConsumed: _told("FLOW_CONSUMED"),
    FlowMismatch: _told("FLOW_MISMATCH"),
    IssuerMismatch: _told("ISSUER_MISMATCH"),
    ConfigSuperseded: _told("CONFIG_SUPERSEDED", "server_id"),
    AuthorizationDeclined: _told("AUTHORIZATION_DECLINED", "error"),
}
