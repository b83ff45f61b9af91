"""HTTP route of the events of a workspace."""

from starlette.requests import Request

from gateway.api.events import WORKSPACE_EVENTS, workspace_event
from gateway.api.parameters import path_id
from gateway.http.authentication import Principal
from gateway.http.request_body import event_types, int_parameter, read_query
from gateway.streams.chatd_client import ChatdClient
from gateway.streams.watch_stream import StreamFactory, WatchStream, opened
from parley.api.workspace.v1 import workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.contract.rules import JSON_INTEGER_MAX


class WorkspaceRoutes:
    """The stream under /workspaces/{workspace_id}."""

    def __init__(self, chatd: ChatdClient, *, stream: StreamFactory) -> None:
        self._chatd = chatd
        self._stream = stream

    async def events(self, request: Request, principal: Principal) -> WatchStream:
        """Stream a workspace; watching alone does not extend its lifetime."""
        query = read_query(request, "after", "types")
        kinds = event_types(query, WORKSPACE_EVENTS)
        workspace_id = path_id(request, "workspace_id")
        asked = api.WatchWorkspaceRequest(
            workspace_id=workspace_id,
            after_log_sequence=int_parameter(query, "after", least=0, most=JSON_INTEGER_MAX) or 0,
            passive=True,
        )
        # The first message is read here, so that an error is still returned as a problem document.
        over = api.WatchWorkspaceResponse(closed=workspace_pb2.StreamEnd())
        call, first = await self._chatd.ask_any(
            principal.user, lambda stubs: opened(stubs.catalogue.WatchWorkspace(asked), over)
        )
        about = {"workspace_id": workspace_id}
        stream = self._stream(principal, about, kinds)
        return WatchStream(stream, call, first, workspace_event, about)
