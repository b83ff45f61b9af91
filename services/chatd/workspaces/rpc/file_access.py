"""Files of a workspace for people: found, searched, described and written, on its node."""

from collections.abc import AsyncIterable, AsyncIterator, Callable
from typing import Final

import grpc

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.users.rpc.callers import caller_as_owner
from chatd.workspaces.clients.nodes import Nodes
from chatd.workspaces.rpc.access import WorkspaceAccess
from chatd.workspaces.rpc.node_answers import answered_by_node, changed_by_node
from parley.api.workspace.v1 import file_pb2, file_service_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.api.workspace.v1.workspace_access_service_pb2_grpc import WorkspaceAccessServiceServicer
from parley.rpc.method import check_request

Context = grpc.aio.ServicerContext

ANSWER_S: Final = 30.0
SEARCH_S: Final = 20.0
UPLOAD_S: Final = 120.0
FOUND: Final = 50
MATCHES: Final = 100
#: Of all lines that one search answers with.
SEARCH_BYTES_MAX: Final = 1 << 20
FIND_MODE = {
    file_service_pb2.FIND_MODE_UNSPECIFIED: file_service_pb2.FIND_MODE_FUZZY,
    file_service_pb2.FIND_MODE_GLOB: file_service_pb2.FIND_MODE_GLOB,
    file_service_pb2.FIND_MODE_FUZZY: file_service_pb2.FIND_MODE_FUZZY,
}


class FileAccessMethods(WorkspaceAccessServiceServicer):
    """The methods of files; each authorises the caller and asks the node of the workspace."""

    _workspace_access: WorkspaceAccess
    _nodes: Nodes
    _files_changed: Callable[[ChatId, Owner], None]

    async def FindWorkspaceFiles(
        self, request: api.FindWorkspaceFilesRequest, context: Context
    ) -> api.FindWorkspaceFilesResponse:
        """Find files by name."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        if not access.is_there:
            return api.FindWorkspaceFilesResponse()
        asked = file_service_pb2.FindFilesRequest(
            context=access.context(),
            query=request.query,
            mode=FIND_MODE[request.mode],
            path=request.path,
            page_size=request.page_size or FOUND,
            page_token=request.page_token,
            include_ignored=request.include_ignored,
        )
        node = self._nodes.files(access.workspace_id)
        page = await answered_by_node(access, lambda: node.FindFiles(asked, timeout=ANSWER_S))
        return api.FindWorkspaceFilesResponse(
            files=page.files, next_page_token=page.next_page_token, truncated=page.truncated
        )

    async def SearchWorkspaceFiles(
        self, request: api.SearchWorkspaceFilesRequest, context: Context
    ) -> api.SearchWorkspaceFilesResponse:
        """Search the content of files; a long result is cut."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        if not access.is_there:
            return api.SearchWorkspaceFilesResponse()
        asked = file_service_pb2.SearchFilesRequest(
            context=access.context(),
            pattern=request.pattern,
            literal=not request.regex,
            paths=[request.path] if request.path else [],
            globs=[request.glob] if request.glob else [],
            context_lines=request.context_lines,
            limit=request.limit or MATCHES,
            include_ignored=request.include_ignored,
            timeout_ms=round(SEARCH_S * 1000),
            batched=True,
        )
        node = self._nodes.files(access.workspace_id)

        async def search() -> api.SearchWorkspaceFilesResponse:
            return await _collected(node.SearchFiles(asked, timeout=SEARCH_S + ANSWER_S))

        return await answered_by_node(access, search)

    async def GetWorkspacePath(
        self, request: api.GetWorkspacePathRequest, context: Context
    ) -> api.GetWorkspacePathResponse:
        """Return what is known of a path, with the hash of its content."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        asked = file_service_pb2.StatPathRequest(
            context=access.context(), path=request.path, with_etag=True
        )
        node = self._nodes.files(access.workspace_id)
        found = await answered_by_node(access, lambda: node.StatPath(asked, timeout=ANSWER_S))
        return api.GetWorkspacePathResponse(
            exists=found.exists,
            info=found.info if found.exists else None,
            etag=found.etag,
            suggestions=found.suggestions,
        )

    async def UploadWorkspaceFile(
        self, request_iterator: AsyncIterator[api.UploadWorkspaceFileRequest], context: Context
    ) -> api.UploadWorkspaceFileResponse:
        """Write a file once for each request id; the node replaces it in one step."""
        first = await anext(aiter(request_iterator), None)
        if first is None or not first.HasField("head"):
            raise InvalidRequest("head", "must come first")
        head = first.head
        check_request(head)
        access = await self._workspace_access.for_changing(head.chat_id)
        passed_on = file_service_pb2.UploadFileHead(
            context=access.context(),
            request_id=access.request_id(head.request_id),
            path=head.path,
            if_etag=head.if_etag,
            create_only=head.create_only,
            size_bytes=head.size_bytes,
        )
        node = self._nodes.files(access.workspace_id)
        written = await changed_by_node(
            access,
            head.request_id,
            lambda: node.UploadFile(_passed_on(passed_on, request_iterator), timeout=UPLOAD_S),
        )
        self._files_changed(ChatId(access.named), caller_as_owner())
        return api.UploadWorkspaceFileResponse(change=written.change)


async def _passed_on(
    head: file_service_pb2.UploadFileHead, pieces: AsyncIterator[api.UploadWorkspaceFileRequest]
) -> AsyncIterator[file_service_pb2.UploadFileRequest]:
    yield file_service_pb2.UploadFileRequest(head=head)
    async for piece in pieces:
        yield file_service_pb2.UploadFileRequest(chunk=piece.chunk)


async def _collected(
    found: AsyncIterable[file_service_pb2.SearchFilesResponse],
) -> api.SearchWorkspaceFilesResponse:
    """Return what a search found, as much as fits into a response."""
    answer = api.SearchWorkspaceFilesResponse()
    left_bytes = SEARCH_BYTES_MAX

    def add(files: list[file_pb2.FileMatches]) -> None:
        nonlocal left_bytes
        for each in files:
            left_bytes -= each.ByteSize()
            if left_bytes < 0:
                answer.truncated = True
                return
            answer.files.append(each)

    async for each in found:
        match each.WhichOneof("kind"):
            case "files":
                add(list(each.files.files))
            case "file":
                add([each.file])
            case "summary":
                answer.truncated = answer.truncated or each.summary.truncated
                answer.timed_out = each.summary.timed_out
    return answer
