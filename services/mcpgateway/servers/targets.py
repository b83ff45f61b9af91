"""Resolves servers for one user: access check and decrypted secrets."""

from dataclasses import dataclass

from mcpgateway.servers.domain import ChatContext, Reason, Server, Target
from mcpgateway.servers.errors import UpstreamFailed
from mcpgateway.servers.selection import access_error
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
        raise problem or AssertionError("a server that is not there is a barrier")
    return await open_target(servers, server, caller_context)
