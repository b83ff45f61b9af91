"""HTTP routes of workspaces, quotas and nodes."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.workspaces import (
    STATE,
    WORKSPACE_EVENTS,
    changed_to_json,
    limits_to_proto,
    merge_to_json,
    network_to_proto,
    node_to_json,
    quota_to_json,
    workspace_event,
    workspace_to_json,
)
from gateway.api.inputs.chats import INTEGER_MAX
from gateway.api.inputs.workspaces import (
    ForkInput,
    MergeInput,
    NewWorkspace,
    PolicyInput,
    StartInput,
    StopInput,
    TtlInput,
)
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import workspace_id_of
from gateway.http.authentication import Principal
from gateway.http.request_body import (
    event_types,
    flag,
    idempotency_key,
    int_parameter,
    invalid_parameter,
    read_json,
    read_optional_json,
    read_query,
)
from gateway.http.responses import json_response
from gateway.streams.chatd_client import ChatdClient
from gateway.streams.watch_stream import StreamFactory, WatchStream, opened
from parley.api.workspace.v1 import node_service_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_service_pb2 as api
from parley.api.workspace.v1.workspace_service_pb2_grpc import WorkspaceServiceStub

ID_CHARACTERS_MAX = 64
#: A merge reads both trees.
MERGE_S = 150.0

R = TypeVar("R")
Begun = api.StartWorkspaceResponse | api.StopWorkspaceResponse | api.DeleteWorkspaceResponse


class WorkspaceRoutes:
    """The routes under /workspaces, and /quota and /nodes."""

    def __init__(
        self, chatd: ChatdClient, *, stream: StreamFactory, new_id: Callable[[], str]
    ) -> None:
        self._chatd = chatd
        self._stream = stream
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List workspaces: live ones first, then newest use first."""
        query = read_query(request, "owner_id", "node_id", "limit", "cursor", repeatable=("state",))
        page = page_request(query)
        asked = api.ListWorkspacesRequest(
            page_size=page.page_size,
            page_token=page.page_token,
            states=map(_state, request.query_params.getlist("state")),
            owner_id=query.get("owner_id", "")[:ID_CHARACTERS_MAX],
            node_id=query.get("node_id", "")[:ID_CHARACTERS_MAX],
        )
        answer = await self._asked(principal, lambda stub: stub.ListWorkspaces(asked))
        items = map(workspace_to_json, answer.workspaces)
        return json_response(page_to_json(items, answer.next_page_token))

    async def create(self, request: Request, principal: Principal) -> Response:
        """Create a workspace, once for each key; its state shows when it is ready."""
        read_query(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewWorkspace)
        asked = api.CreateWorkspaceRequest(
            request_id=key,
            template_id=body.template_id,
            name=body.name,
            parameters=body.parameters,
            preset_id=body.preset_id,
            ttl_ms=body.ttl_ms,
            chat_id=body.chat_id,
            secret_names=body.secret_names,
        )
        answer = await self._asked(principal, lambda stub: stub.CreateWorkspace(asked))
        document = changed_to_json(answer.workspace, answer.outcome)
        return json_response(document, status=202, headers=_location(answer.workspace))

    async def read(self, request: Request, principal: Principal) -> Response:
        """Read one workspace."""
        read_query(request)
        asked = api.GetWorkspaceRequest(workspace_id=workspace_id_of(request))
        answer = await self._asked(principal, lambda stub: stub.GetWorkspace(asked))
        return json_response(workspace_to_json(answer.workspace))

    async def events(self, request: Request, principal: Principal) -> WatchStream:
        """Stream a workspace; watching alone does not extend its lifetime."""
        query = read_query(request, "after", "types")
        kinds = event_types(query, WORKSPACE_EVENTS)
        workspace_id = workspace_id_of(request)
        asked = api.WatchWorkspaceRequest(
            workspace_id=workspace_id,
            after_log_sequence=int_parameter(query, "after", least=0, most=INTEGER_MAX) or 0,
            passive=True,
        )
        # The first message is read here, so that an error is still returned as a problem document.
        over = api.WatchWorkspaceResponse(closed=workspace_pb2.StreamEnd())
        call, first = await self._asked(
            principal, lambda stub: opened(stub.WatchWorkspace(asked), over)
        )
        about = {"workspace_id": workspace_id}
        stream = self._stream(principal, about, kinds)
        return WatchStream(stream, call, first, workspace_event, about)

    async def start(self, request: Request, principal: Principal) -> Response:
        """Start a workspace, or create a failed one again."""
        workspace_id, key = self._named(request)
        body = await read_optional_json(request, StartInput)
        asked = api.StartWorkspaceRequest(
            request_id=key, workspace_id=workspace_id, parameters=body.parameters
        )
        return await self._begun(principal, lambda stub: stub.StartWorkspace(asked))

    async def stop(self, request: Request, principal: Principal) -> Response:
        """Stop a workspace; its files are kept."""
        workspace_id, key = self._named(request)
        body = await read_optional_json(request, StopInput)
        asked = api.StopWorkspaceRequest(
            request_id=key, workspace_id=workspace_id, grace_ms=body.grace_ms
        )
        return await self._begun(principal, lambda stub: stub.StopWorkspace(asked))

    async def delete(self, request: Request, principal: Principal) -> Response:
        """Remove a workspace with its files."""
        is_forced = flag(read_query(request, "force"), "force")
        workspace_id, key = self._named(request, "force")
        asked = api.DeleteWorkspaceRequest(
            request_id=key, workspace_id=workspace_id, force=is_forced
        )
        return await self._begun(principal, lambda stub: stub.DeleteWorkspace(asked))

    async def fork(self, request: Request, principal: Principal) -> Response:
        """Create a copy of a workspace, once for each key."""
        workspace_id, key = self._named(request)
        body = await read_optional_json(request, ForkInput)
        mode = "UNSPECIFIED" if body.mode is None else body.mode.name
        asked = api.ForkWorkspaceRequest(
            request_id=key,
            source_workspace_id=workspace_id,
            mode=workspace_pb2.ForkMode.Value(f"FORK_MODE_{mode}"),
            name=body.name,
            chat_id=body.chat_id,
        )
        answer = await self._asked(principal, lambda stub: stub.ForkWorkspace(asked))
        document = workspace_to_json(answer.workspace)
        return json_response(document, status=202, headers=_location(answer.workspace))

    async def merge(self, request: Request, principal: Principal) -> Response:
        """Merge the changes of a fork into its parent; a conflict is not an error."""
        workspace_id, key = self._named(request)
        body = await read_optional_json(request, MergeInput)
        asked = api.MergeForkRequest(
            request_id=key,
            fork_workspace_id=workspace_id,
            strategy=workspace_pb2.MergeStrategy.Value(f"MERGE_STRATEGY_{body.strategy.name}"),
            paths=body.paths,
            dry_run=body.dry_run,
        )
        answer = await self._asked(principal, lambda stub: stub.MergeFork(asked, timeout=MERGE_S))
        return json_response(merge_to_json(answer.report))

    async def set_ttl(self, request: Request, principal: Principal) -> Response:
        """Change the lifetime of a workspace."""
        workspace_id, key = self._named(request)
        body = await read_json(request, TtlInput)
        asked = api.SetWorkspaceTtlRequest(
            request_id=key, workspace_id=workspace_id, ttl_ms=body.ttl_ms
        )
        answer = await self._asked(principal, lambda stub: stub.SetWorkspaceTtl(asked))
        return json_response(workspace_to_json(answer.workspace))

    async def set_policy(self, request: Request, principal: Principal) -> Response:
        """Change the network policy and limits of a workspace, also while it runs."""
        workspace_id, key = self._named(request)
        body = await read_json(request, PolicyInput)
        asked = api.SetWorkspacePolicyRequest(
            request_id=key,
            workspace_id=workspace_id,
            network=None if body.network is None else network_to_proto(body.network),
            limits=None if body.limits is None else limits_to_proto(body.limits),
        )
        answer = await self._asked(principal, lambda stub: stub.SetWorkspacePolicy(asked))
        return json_response(workspace_to_json(answer.workspace))

    async def quota(self, request: Request, principal: Principal) -> Response:
        """Return the quota usage of a user."""
        query = read_query(request, "owner_id")
        asked = api.GetQuotaRequest(owner_id=query.get("owner_id", "")[:ID_CHARACTERS_MAX])
        answer = await self._asked(principal, lambda stub: stub.GetQuota(asked))
        return json_response(quota_to_json(answer.dimensions))

    async def nodes(self, request: Request, principal: Principal) -> Response:
        """List the machines that host workspaces."""
        page = page_request(read_query(request, "limit", "cursor"))
        asked = node_service_pb2.ListNodesRequest(
            page_size=page.page_size, page_token=page.page_token
        )
        answer = await self._chatd.ask_any(
            principal.user, lambda stubs: stubs.nodes.ListNodes(asked)
        )
        return json_response(page_to_json(map(node_to_json, answer.nodes), answer.next_page_token))

    def _named(self, request: Request, *parameters: str) -> tuple[str, str]:
        """Return the workspace of a change, and the request id."""
        read_query(request, *parameters)
        return workspace_id_of(request), idempotency_key(request) or self._new_id()

    async def _asked(
        self, principal: Principal, question: Callable[[WorkspaceServiceStub], Awaitable[R]]
    ) -> R:
        return await self._chatd.ask_any(principal.user, lambda stubs: question(stubs.catalogue))

    async def _begun(
        self, principal: Principal, question: Callable[[WorkspaceServiceStub], Awaitable[Begun]]
    ) -> Response:
        """Return the workspace with the outcome of an accepted change."""
        answer = await self._asked(principal, question)
        return json_response(changed_to_json(answer.workspace, answer.outcome), status=202)


def _location(workspace: workspace_pb2.Workspace) -> dict[str, str]:
    return {"location": f"/api/v1/workspaces/{workspace.workspace_id}"}


def _state(word: str) -> "workspace_pb2.WorkspaceState.ValueType":
    known = {name: value for value, name in STATE.items() if name is not None}
    if word not in known:
        raise invalid_parameter("state", f"Give one of {', '.join(known)}.")
    return workspace_pb2.WorkspaceState.ValueType(known[word])
