"""WorkspaceServerService: the MCP servers of workspaces, for the owners of chats."""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import grpc

from chatd.chats.rpc.methods import with_read_only_errors
from chatd.content.domain.messages import ChatMode
from chatd.models.store.catalogue import ChatFacts
from chatd.primitives.domain.errors import InvalidRequest, ResourceNotFound
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.primitives.rpc import fields
from chatd.users.rpc.callers import caller_as_owner
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspace_servers.domain.references import content_json
from chatd.workspace_servers.domain.state import (
    DefinitionChanged,
    ServerFailed,
    ServerState,
    ServerStatus,
    WorkspaceServerNotFound,
)
from chatd.workspace_servers.engine.references import ServerReferences
from chatd.workspace_servers.engine.servers import WorkspaceServers
from chatd.workspaces.domain.ports import WorkspaceLocator
from parley.api.mcp.v1 import tool_service_pb2 as mcp_api
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
        facts_of: Returns the properties of a chat.
    """

    require_owner: Callable[[ChatId, OwnerId], Awaitable[object]]
    is_shared: Callable[[ChatId], Awaitable[bool]]
    locator: WorkspaceLocator
    servers: WorkspaceServers
    facts_of: Callable[[ChatId], Awaitable[ChatFacts]]


class WorkspaceServerServicer(WorkspaceServerServiceServicer):
    """Serves the MCP servers of workspaces."""

    def __init__(self, ports: ServerPorts) -> None:
        self._ports = ports
        self._references = ServerReferences(ports.servers)

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

    @with_read_only_errors
    async def ListWorkspaceServerResources(
        self, request: api.ListWorkspaceServerResourcesRequest, context: Context
    ) -> api.ListWorkspaceServerResourcesResponse:
        """List the resources of a trusted server."""
        place = await self._place_of_mode(request.chat_id, request.name)
        with _failures_of(request.name, "name"):
            found = await self._references.resources(place, request.name)
        return api.ListWorkspaceServerResourcesResponse(
            resources=[
                mcp_api.ServerResource(
                    uri=each.uri,
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    media_type=each.media_type,
                )
                for each in found
            ]
        )

    @with_read_only_errors
    async def ReadWorkspaceServerResource(
        self, request: api.ReadWorkspaceServerResourceRequest, context: Context
    ) -> api.ReadWorkspaceServerResourceResponse:
        """Read a resource of a trusted server."""
        place = await self._place_of_mode(request.chat_id, request.name)
        with _failures_of(request.name, "uri"):
            contents = await self._references.read(place, request.name, request.uri)
            encoded = content_json(contents)
        return api.ReadWorkspaceServerResourceResponse(content_json=encoded)

    @with_read_only_errors
    async def ListWorkspaceServerPrompts(
        self, request: api.ListWorkspaceServerPromptsRequest, context: Context
    ) -> api.ListWorkspaceServerPromptsResponse:
        """List the prompts of a trusted server."""
        place = await self._place_of_mode(request.chat_id, request.name)
        with _failures_of(request.name, "name"):
            found = await self._references.prompts(place, request.name)
        return api.ListWorkspaceServerPromptsResponse(
            prompts=[
                mcp_api.ServerPrompt(
                    name=each.name,
                    title=each.title,
                    description=each.description,
                    arguments=[
                        mcp_api.ServerPromptArgument(
                            name=given.name,
                            description=given.description,
                            is_required=given.is_required,
                        )
                        for given in each.arguments
                    ],
                )
                for each in found
            ]
        )

    @with_read_only_errors
    async def GetWorkspaceServerPrompt(
        self, request: api.GetWorkspaceServerPromptRequest, context: Context
    ) -> api.GetWorkspaceServerPromptResponse:
        """Get a prompt of a trusted server with its arguments filled in."""
        place = await self._place_of_mode(request.chat_id, request.name)
        with _failures_of(request.name, "prompt"):
            filled = await self._references.prompt(
                place, request.name, request.prompt, request.arguments
            )
        return api.GetWorkspaceServerPromptResponse(
            description=filled.description, text=filled.text
        )

    async def _place_of_mode(self, chat_id: str, name: str) -> ServerPlace:
        """Return the workspace of a chat of the caller, confined as its turns are.

        Raises:
            ChatNotFound: The caller owns no such chat.
            ResourceNotFound: It has no workspace, and so no servers.
        """
        place = await self._place(chat_id)
        if not place.location.is_made:
            raise ResourceNotFound("workspace server", name)
        facts = await self._ports.facts_of(place.chat_id)
        return replace(place, is_read_only=facts.mode is not ChatMode.ORDINARY)

    async def _place(self, chat_id: str) -> ServerPlace:
        """Return the workspace of a chat of the caller.

        Raises:
            ChatNotFound: The caller owns no such chat.
        """
        owner, found_id = caller_as_owner(), fields.chat_id_of(chat_id)
        await self._ports.require_owner(found_id, owner.id)
        location = await self._ports.locator.locate(found_id)
        return ServerPlace(found_id, owner, location, is_read_only=False)


@contextmanager
def _failures_of(name: str, field: str) -> Iterator[None]:
    """Convert the errors of a server; `field` is what it was asked for."""
    try:
        yield
    except WorkspaceServerNotFound as missing:
        raise ResourceNotFound("workspace server", name) from missing
    except ServerFailed as failed:
        raise InvalidRequest(
            field, f"cannot be had from the MCP server {name}: {failed}"
        ) from failed


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
