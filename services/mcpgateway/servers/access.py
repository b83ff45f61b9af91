"""Access of one user to a server: why it is refused, or the server with decrypted secrets."""

from dataclasses import dataclass

from mcpgateway.servers.domain import AuthKind, ChatContext, Reason, Server, Target
from mcpgateway.servers.errors import (
    McpError,
    NeedsConnect,
    PlanModeDenied,
    ServerDisabled,
    ServerNotFound,
    UpstreamFailed,
)
from mcpgateway.servers.store import Servers
from parley.secrets import SecretsError


@dataclass(frozen=True, slots=True)
class CallerContext:
    """The user and the chat of a request."""

    user_id: str
    context: ChatContext


async def open_target(servers: Servers, server: Server, caller_context: CallerContext) -> Target:
    """Return the server with its decrypted secrets for a caller.

    Raises:
        UpstreamFailed: Its secrets cannot be decrypted.
    """
    try:
        credentials = await servers.credentials(server)
    except SecretsError as error:
        raise UpstreamFailed(Reason.MISCONFIGURED, str(error)) from error
    return Target(
        server, credentials.headers, caller_context.user_id, caller_context.context.chat_id
    )


async def target_for(servers: Servers, server_id: str, caller_context: CallerContext) -> Target:
    """Return the server with its decrypted secrets for a caller, if they may use it.

    Raises:
        McpError: They may not, or its secrets cannot be decrypted.
    """
    found = await servers.find([server_id])
    server = found.get(server_id)
    problem = access_error(server_id, server, caller_context.context)
    if problem is not None or server is None:
        raise problem or AssertionError("a missing server is refused")
    return await open_target(servers, server, caller_context)


def access_error(server_id: str, server: Server | None, context: ChatContext) -> McpError | None:
    """Return why a chat may not use a server, before any request to the server."""
    if server is None:
        return ServerNotFound(server_id)
    if not server.settings.is_enabled:
        return ServerDisabled(server_id)
    if not context.allows(server.settings):
        return PlanModeDenied(server_id)
    if server.settings.auth_kind is AuthKind.OAUTH2:
        # Grants require the authorization service, which is not implemented; until then no user has
        # one.
        return NeedsConnect(server_id)
    return None
