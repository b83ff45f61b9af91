"""HTTP routes of the checkpoints of a chat's repositories."""

from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from gateway.api.convert.workspace_access import checkpoint_to_json, git_file_to_json
from gateway.api.inputs.workspace_access import NewCheckpoint, RestoreInput
from gateway.api.paging import page_request, page_to_json
from gateway.api.path_parameters import chat_id_of
from gateway.http.authentication import Principal
from gateway.http.request_body import idempotency_key, read_json, read_query
from gateway.http.responses import json_response
from gateway.streams.workspace_client import Workspaces
from parley.api.workspace.v1 import workspace_access_service_pb2 as api

#: The first checkpoint of a large tree takes long, because all files are stored.
CHECKPOINT_S: Final = 330.0


class CheckpointRoutes:
    """The routes under /chats/{chat_id}/checkpoints."""

    def __init__(self, workspaces: Workspaces, *, new_id: Callable[[], str]) -> None:
        self._workspaces = workspaces
        self._new_id = new_id

    async def list(self, request: Request, principal: Principal) -> Response:
        """List checkpoints, newest first."""
        query = read_query(request, "repository", "limit", "cursor")
        chat_id, page = chat_id_of(request), page_request(query)
        asked = api.ListWorkspaceCheckpointsRequest(
            workspace_id=chat_id,
            repository=query.get("repository", ""),
            page_size=page.page_size,
            page_token=page.page_token,
        )
        answer = await self._workspaces.ask(
            principal.user, chat_id, lambda stub: stub.ListWorkspaceCheckpoints(asked)
        )
        items = map(checkpoint_to_json, answer.checkpoints)
        return json_response(page_to_json(items, answer.next_page_token))

    async def create(self, request: Request, principal: Principal) -> Response:
        """Store a checkpoint of all files, once for each key."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, NewCheckpoint)
        asked = api.CreateWorkspaceCheckpointRequest(
            request_id=key,
            workspace_id=chat_id,
            repository=body.repository,
            label=body.label,
        )
        answer = await self._workspaces.ask(
            principal.user,
            chat_id,
            lambda stub: stub.CreateWorkspaceCheckpoint(asked, timeout=CHECKPOINT_S),
        )
        files = [git_file_to_json(file) for file in answer.files]
        document = {**checkpoint_to_json(answer.checkpoint), "files": files}
        return json_response(document, status=201)

    async def restore(self, request: Request, principal: Principal) -> Response:
        """Restore files from a checkpoint, once for each key."""
        read_query(request)
        chat_id = chat_id_of(request)
        key = idempotency_key(request) or self._new_id()
        body = await read_json(request, RestoreInput)
        asked = api.RestoreWorkspaceCheckpointRequest(
            request_id=key,
            workspace_id=chat_id,
            repository=body.repository,
            ref=body.ref,
            paths=body.paths,
            if_unchanged_since_ref=body.if_unchanged_since_ref,
            remove_later_files=body.remove_later_files,
        )
        answer = await self._workspaces.ask(
            principal.user,
            chat_id,
            lambda stub: stub.RestoreWorkspaceCheckpoint(asked, timeout=CHECKPOINT_S),
        )
        files = [git_file_to_json(file) for file in answer.files]
        return json_response({"files": files, "previous": checkpoint_to_json(answer.previous)})
