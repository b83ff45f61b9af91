"""Files that the turns of a chat changed, as the node of its workspace keeps them."""

from typing import Final

import grpc

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.workspaces.clients.nodes import Nodes
from chatd.workspaces.rpc.access import AuthorizedAccess, WorkspaceAccess
from chatd.workspaces.rpc.node_answers import answered_by_node
from parley.api.workspace.v1 import checkpoint_service_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.api.workspace.v1.workspace_access_service_pb2_grpc import WorkspaceAccessServiceServicer

Context = grpc.aio.ServicerContext

#: Changes of processes are looked for first, in the whole tree.
ANSWER_S: Final = 60.0


class TurnFileMethods(WorkspaceAccessServiceServicer):
    """The methods of turns; each authorises the caller and asks the node of the workspace."""

    _workspace_access: WorkspaceAccess
    _nodes: Nodes

    async def ListWorkspaceTurnFiles(
        self, request: api.ListWorkspaceTurnFilesRequest, context: Context
    ) -> api.ListWorkspaceTurnFilesResponse:
        """List the files that a turn changed, with their differences."""
        access = await self._of_chat(request.workspace_id)
        if not access.is_there:
            return api.ListWorkspaceTurnFilesResponse()
        asked = checkpoint_service_pb2.ListTurnFilesRequest(
            context=access.context(access.chat_id), turn_id=request.turn_id
        )
        node = self._nodes.checkpoints(access.workspace_id)
        found = await answered_by_node(access, lambda: node.ListTurnFiles(asked, timeout=ANSWER_S))
        return api.ListWorkspaceTurnFilesResponse(
            files=found.files, omitted=found.omitted, incomplete=found.incomplete
        )

    async def ReadWorkspaceTurnFile(
        self, request: api.ReadWorkspaceTurnFileRequest, context: Context
    ) -> api.ReadWorkspaceTurnFileResponse:
        """Read a file as a turn left it, or found it."""
        access = await self._of_chat(request.workspace_id)
        asked = checkpoint_service_pb2.ReadTurnFileRequest(
            context=access.context(access.chat_id),
            turn_id=request.turn_id,
            path=request.path,
            before=request.before,
        )
        node = self._nodes.checkpoints(access.workspace_id)
        found = await answered_by_node(access, lambda: node.ReadTurnFile(asked, timeout=ANSWER_S))
        return api.ReadWorkspaceTurnFileResponse(
            content=found.content,
            size_bytes=found.size_bytes,
            binary=found.binary,
            truncated=found.truncated,
        )

    async def _of_chat(self, chat_id: str) -> AuthorizedAccess:
        """Authorise a reader of a chat; the id of a workspace names no turns.

        Raises:
            WorkspaceNotFound: There is no such chat for the caller.
        """
        access = await self._workspace_access.for_reading(chat_id)
        if not access.chat_id:
            raise WorkspaceNotFound(chat_id)
        return access
