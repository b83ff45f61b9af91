"""The errors of mcpgateway.

McpError
├── InvalidRequest          fields outside their limits; all of them together
├── RequestIdReused         the request id was used before with another body
├── ServerNotFound          no such server, or none that this caller may see
├── ServerDisabled          an admin disabled it
├── SlugTaken               another server has the slug
├── SlugInUse               chats have used the server, so its slug stays
├── CredentialsNeeded       stored credentials would be sent to another origin
├── VersionConflict         the server changed since it was read
├── GroupsUnavailable       the groups of users cannot be read now
├── NeedsConnect            the user has not connected their account
│   └── NeedsReconnect      the server no longer accepts the login of the user
├── MissingUserValues       the user has not stored all values that the server needs
├── ToolNotFound            the server has no such tool for this caller
├── ToolDenied              the lists of the server exclude the tool
├── ToolQuarantined         the definition changed since an admin last looked
├── PlanModeDenied          the server is not approved for plan mode
├── ToolChanged             the definition is not the one the caller saw
├── BadArguments            the arguments are not a JSON object within the limits
├── CatalogueChanged        the tools changed between two pages
├── StaleOwner              a newer owner of the chat has called
├── JournalChanged          the journal is not the one that was named
├── ExecutionIdReused       the execution id names another call
├── CallNotFound            a call is answered that was never seen
├── CallAcknowledged        the result was acknowledged and dropped
├── TooManyCalls            the limit of concurrent calls is reached
│   └── Overloaded          more calls start than this process can take
├── ServerChanged           the server changed while a call of it was prepared
└── UpstreamFailed          the MCP server cannot be reached or fails
    └── CredentialsRefused  it refuses the credentials of a request
"""

from collections.abc import Mapping, Sequence

from mcpgateway.servers.domain import Reason


class McpError(Exception):
    """Base class of errors of mcpgateway."""


class InvalidRequest(McpError):
    """Fields are outside their limits.

    Attributes:
        problems: What is wrong, by the path of the field.
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {text}" for field, text in problems.items()))
        self.problems = problems


class RequestIdReused(McpError):
    """The request id was used before with another body."""

    def __init__(self, request_id: str) -> None:
        super().__init__("this request id was used for another request; choose a new one")
        self.request_id = request_id


class ServerNotFound(McpError):
    """There is no such server for this caller."""

    def __init__(self, server_id: str) -> None:
        super().__init__(f"there is no MCP server {server_id}")
        self.server_id = server_id


class ServerDisabled(McpError):
    """An admin disabled the server."""

    def __init__(self, server_id: str) -> None:
        super().__init__("this MCP server is switched off; an admin can switch it on")
        self.server_id = server_id


class SlugTaken(McpError):
    """Another server has the slug."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"another MCP server has the slug {slug!r}; choose another one")
        self.slug = slug


class SlugInUse(McpError):
    """Chats have used the server, so its slug stays."""

    def __init__(self, slug: str) -> None:
        super().__init__(f"chats have used tools of {slug!r}, so the slug cannot change")
        self.slug = slug


class CredentialsNeeded(McpError):
    """A change would send stored credentials to another origin than they were given for.

    Attributes:
        old_origin: Where they are sent to now.
        new_origin: Where they would be sent to.
    """

    def __init__(self, old_origin: str, new_origin: str) -> None:
        super().__init__(
            f"the stored credentials were given for {old_origin} and would be sent to "
            f"{new_origin}; give them again in the same request"
        )
        self.old_origin = old_origin
        self.new_origin = new_origin


class VersionConflict(McpError):
    """The server changed since it was read."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the MCP server has version {version} now; read it again")
        self.version = version


class GroupsUnavailable(McpError):
    """The groups of users cannot be read now."""

    def __init__(self) -> None:
        super().__init__("it cannot be found out now who may use an MCP server; try again shortly")


class MissingUserValues(McpError):
    """The user has not stored all values that the server needs.

    Attributes:
        headers: The headers without a value.
        reason: The kind of problem.
    """

    reason = Reason.MISSING_USER_VALUES

    def __init__(self, server_id: str, headers: Sequence[str]) -> None:
        super().__init__(f"store your values for this MCP server first: {', '.join(headers)}")
        self.server_id = server_id
        self.headers = ", ".join(headers)


class ToolQuarantined(McpError):
    """The definition changed since an admin last looked."""

    def __init__(self, server_id: str, tool: str) -> None:
        super().__init__(
            f"the definition of the tool {tool!r} changed; an admin has to approve it first"
        )
        self.server_id = server_id
        self.tool = tool


class NeedsConnect(McpError):
    """The user has not connected their account.

    Attributes:
        reason: The kind of problem.
    """

    reason = Reason.NEEDS_CONNECT

    def __init__(
        self, server_id: str, text: str = "connect your account to this MCP server first"
    ) -> None:
        super().__init__(text)
        self.server_id = server_id


class NeedsReconnect(NeedsConnect):
    """The server no longer accepts the login of the user."""

    reason = Reason.NEEDS_RECONNECT


class ToolNotFound(McpError):
    """The server has no such tool for this caller."""

    def __init__(self, server_id: str, tool: str) -> None:
        super().__init__(f"the MCP server has no tool {tool!r}; list the tools again")
        self.server_id = server_id
        self.tool = tool


class ToolDenied(McpError):
    """The lists of the server exclude the tool."""

    def __init__(self, server_id: str, tool: str) -> None:
        super().__init__(f"an admin excluded the tool {tool!r}")
        self.server_id = server_id
        self.tool = tool


class PlanModeDenied(McpError):
    """The server is not approved for plan mode."""

    def __init__(self, server_id: str) -> None:
        super().__init__("this MCP server may not be used in plan mode")
        self.server_id = server_id


class ToolChanged(McpError):
    """The definition differs from the one the caller saw."""

    def __init__(self, digest: str) -> None:
        super().__init__("the tool's definition has changed; list the tools again")
        self.digest = digest


class BadArguments(McpError):
    """The arguments are not a JSON object within the limits."""

    def __init__(self, problem: str, text: str) -> None:
        super().__init__(text)
        self.problem = problem


class CatalogueChanged(McpError):
    """The tools changed between two pages."""

    def __init__(self, digest: str) -> None:
        super().__init__("the tools changed meanwhile; start at the first page")
        self.digest = digest


class StaleOwner(McpError):
    """A newer owner of the chat has called."""

    def __init__(self, owner_epoch: int) -> None:
        super().__init__(f"the chat has a newer owner with epoch {owner_epoch}; stop this one")
        self.owner_epoch = owner_epoch


class JournalChanged(McpError):
    """The journal is not the one that was named."""

    def __init__(self, generation: str) -> None:
        super().__init__("calls are journaled elsewhere now; what the old journal held is unknown")
        self.generation = generation


class ExecutionIdReused(McpError):
    """The execution id names a call with other content or of another caller."""

    def __init__(self, execution_id: str) -> None:
        super().__init__("this execution id names another call; derive a new one")
        self.execution_id = execution_id


class CallNotFound(McpError):
    """A call is answered that was never seen."""

    def __init__(self, execution_id: str) -> None:
        super().__init__("the call that was answered is not known")
        self.execution_id = execution_id


class CallAcknowledged(McpError):
    """The result was acknowledged and its content dropped."""

    def __init__(self, execution_id: str) -> None:
        super().__init__("the result was acknowledged before and is no longer kept")
        self.execution_id = execution_id


class TooManyCalls(McpError):
    """The limit of concurrent calls is reached."""

    def __init__(self, calls_max: int) -> None:
        super().__init__(f"{calls_max} calls are running already; try again shortly")
        self.calls_max = calls_max


class Overloaded(TooManyCalls):
    """More calls start than this process can take; this one was not started."""

    def __init__(self, calls_max: int) -> None:
        McpError.__init__(
            self, "too many calls are waiting to start, and this one was not; try again shortly"
        )
        self.calls_max = calls_max


class ServerChanged(McpError):
    """The server changed while a call of it was prepared, so the call was not started."""

    def __init__(self, server_id: str) -> None:
        super().__init__("an admin changed this MCP server just now; call the tool again")
        self.server_id = server_id


class UpstreamFailed(McpError):
    """The MCP server cannot be reached, or it fails.

    Attributes:
        reason: The kind of failure.
        may_have_executed: Whether the failed call may have taken effect.
        retry_after_ms: When a retry makes sense; 0 if unknown.
        is_of_request: Whether one request failed and its session is as it was before.
    """

    def __init__(
        self,
        reason: Reason,
        text: str,
        *,
        may_have_executed: bool = False,
        retry_after_ms: int = 0,
        is_of_request: bool = False,
    ) -> None:
        super().__init__(text)
        self.reason = reason
        self.may_have_executed = may_have_executed
        self.retry_after_ms = retry_after_ms
        self.is_of_request = is_of_request


class CredentialsRefused(UpstreamFailed):
    """The MCP server refuses the credentials of a request, which it did not execute.

    Attributes:
        status: The HTTP status, 401 or 403.
        challenge: The header WWW-Authenticate.
    """

    def __init__(self, status: int, challenge: str) -> None:
        super().__init__(
            Reason.MISCONFIGURED,
            f"the server refuses the configured credentials (HTTP {status})",
            is_of_request=True,
        )
        self.status = status
        self.challenge = challenge
