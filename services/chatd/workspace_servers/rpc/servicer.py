"""WorkspaceServerService: the MCP servers of workspaces, for the owners of chats."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

import grpc

from chatd.chats.rpc.methods import with_read_only_errors
from chatd.primitives.domain.errors import InvalidRequest, ResourceNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.state import (
    DefinitionChanged,
    ServerState,
    ServerStatus,
    WorkspaceServerNotFound,
)
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspaces.domain.ports import WorkspaceLocator
from parley.api.workspace.v1 import workspace_server_service_pb2 as api
from parley.api.workspace.v1.workspace_server_service_pb2_grpc import (
    WorkspaceServerServiceServicer,
)

Context = grpc.aio.ServicerContext

STATES: Final = {
    ServerState.INVALID: api.WORKSPACE_SERVER_STATE_INVALID,
    ServerState.UNTRUSTED: api.WORKSPACE_SERVER_STATE_UNTRUSTED,
    ServerState.TRUSTED: api.WORKSPACE_SERVER_STATE_TRUSTED,
    ServerState.RUNNING: api.WORKSPACE_SERVER_STATE_RUNNING,
    ServerState.FAILED: api.WORKSPACE_SERVER_STATE_FAILED,
}


@dataclass(frozen=True, slots=True)
class ServerPorts:
    """The dependencies of WorkspaceServerService.

    Attributes:
        require_owner: Raises ChatNotFound unless a user owns a chat.
        is_shared: Returns whether the caller may read a chat of another owner.
        locator: Finds the workspaces of chats.
        servers: The servers of workspaces.
    """

    require_owner: Callable[[ChatId, OwnerId], Awaitable[object]]
    is_shared: Callable[[ChatId], Awaitable[bool]]
    locator: WorkspaceLocator
    servers: WorkspaceServers


class WorkspaceServerServicer(WorkspaceServerServiceServicer):
    """Serves the MCP servers of workspaces."""

    def __init__(self, ports: ServerPorts) -> None:
        self._ports = ports

    async def is_shared_with_caller(self, chat_id: ChatId) -> bool:
        """Return whether the caller may read a chat of another owner."""
        return await self._ports.is_shared(chat_id)

    async def ListWorkspaceServers(
        self, request: api.ListWorkspaceServersRequest, context: Context
    ) -> api.ListWorkspaceServersResponse:
        """List the servers that a chat's workspace defines now."""
        place = await self._place(request.chat_id)
        if not place.location.is_made:
            return api.ListWorkspaceServersResponse()
        statuses, problem = await self._ports.servers.statuses(place)
        return api.ListWorkspaceServersResponse(servers=map(_server, statuses), problem=problem)

    @with_read_only_errors
    async def TrustWorkspaceServer(
        self, request: api.TrustWorkspaceServerRequest, context: Context
    ) -> api.TrustWorkspaceServerResponse:
        """Trust the definition of a server."""
        place = await self._place(request.chat_id)
        try:
            if not place.location.is_made:
                raise WorkspaceServerNotFound(request.name)
            status = await self._ports.servers.trust(
                place, request.name, request.digest, place.owner.id
            )
        except WorkspaceServerNotFound as missing:
            raise ResourceNotFound("workspace server", request.name) from missing
        except DefinitionChanged as changed:
            message = "is not that of the current definition; list the servers and look at it again"
            raise InvalidRequest("digest", message) from changed
        return api.TrustWorkspaceServerResponse(server=_server(status))

    @with_read_only_errors
    async def UntrustWorkspaceServer(
        self, request: api.UntrustWorkspaceServerRequest, context: Context
    ) -> api.UntrustWorkspaceServerResponse:
        """Trust a server no longer, and stop it."""
        place = await self._place(request.chat_id)
        await self._ports.servers.untrust(place, request.name, place.owner.id)
        return api.UntrustWorkspaceServerResponse()

    async def _place(self, chat_id: str) -> ServerPlace:
        """Return the workspace of a chat of the caller.

        Raises:
            ChatNotFound: The caller owns no such chat.
        """
        owner, found_id = caller_as_owner(), fields.chat_id_of(chat_id)
        await self._ports.require_owner(found_id, owner.id)
        location = await self._ports.locator.locate(found_id)
        return ServerPlace(found_id, owner, location, is_read_only=False)


def _server(status: ServerStatus) -> api.WorkspaceServer:
    definition = status.definition
    return api.WorkspaceServer(
        name=definition.name,
        state=STATES[status.state],
        reason=status.reason,
        command=definition.command,
        arguments=definition.arguments,
        variable_names=[name for name, _ in definition.environment],
        digest=definition.digest,
        tool_names=status.tool_names,
        environment=dict(definition.environment),
        changed_since_trust=status.is_changed,
    )
