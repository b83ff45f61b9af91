"""WorkspaceAccessService: processes, files and Git of a workspace, forwarded to its node."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

import grpc

from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.stopping import DRAINING, unless_stopping
from chatd.users.rpc.callers import caller_as_owner
from chatd.workspaces.clients.nodes import Nodes, answered, node_error_of
from chatd.workspaces.rpc.access import AuthorizedAccess, WorkspaceAccess
from chatd.workspaces.rpc.attach_tickets import COLUMNS, ROWS
from chatd.workspaces.rpc.file_access import FileAccessMethods
from chatd.workspaces.rpc.node_answers import (
    answered_by_node,
    changed_by_node,
    problem_for_caller,
)
from chatd.workspaces.rpc.turn_files import TurnFileMethods
from parley.api.workspace.v1 import (
    file_service_pb2,
    git_service_pb2,
    process_pb2,
    process_service_pb2,
    workspace_pb2,
)
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.rpc import Refusal, acting_for

Context = grpc.aio.ServicerContext

ANSWER_S: Final = 30.0
#: Between the end of a wait and the deadline of its response.
HEADROOM_S: Final = 30.0
DOWNLOAD_S: Final = 3600.0
#: The first checkpoint of a large tree takes long, because all files are stored.
CHECKPOINT_S: Final = 320.0
PROCESSES: Final = 50

R = TypeVar("R")


class WorkspaceAccessServicer(FileAccessMethods, TurnFileMethods):
    """Authorises the caller and forwards the request; the node validates it.

    Args:
        workspace_access: Authorises callers.
        nodes: The clients of nodes.
        stopping: Set when this process stops, which ends waits.
        files_changed: Called with chats in whose workspace files may have changed.
    """

    def __init__(
        self,
        workspace_access: WorkspaceAccess,
        nodes: Nodes,
        stopping: asyncio.Event,
        files_changed: Callable[[ChatId, Owner], None] = lambda chat_id, owner: None,
    ) -> None:
        self._workspace_access = workspace_access
        self._nodes = nodes
        self._stopping = stopping
        self._files_changed = files_changed

    async def ListWorkspaceProcesses(
        self, request: api.ListWorkspaceProcessesRequest, context: Context
    ) -> api.ListWorkspaceProcessesResponse:
        """List processes, including those of users."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        if not access.is_there:
            return api.ListWorkspaceProcessesResponse()
        asked = process_service_pb2.ListProcessesRequest(
            context=access.context(fields.optional_uuid(request.chat_id, "chat_id")),
            page_size=request.page_size or PROCESSES,
            page_token=request.page_token,
            states=request.states,
        )
        node = self._nodes.processes(access.workspace_id)
        page = await answered_by_node(access, lambda: node.ListProcesses(asked, timeout=ANSWER_S))
        return api.ListWorkspaceProcessesResponse(
            processes=page.processes, next_page_token=page.next_page_token
        )

    async def WaitWorkspaceOutput(
        self, request: api.WaitWorkspaceOutputRequest, context: Context
    ) -> api.WaitWorkspaceOutputResponse:
        """Wait for a process as long as requested, and return its output."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        asked = process_service_pb2.WaitOutputRequest(
            context=access.context(),
            process_id=request.process_id,
            since_cursor=request.since_cursor,
            condition=request.condition,
            budget=request.budget,
        )
        node = self._nodes.processes(access.workspace_id)
        within_s = request.condition.max_wait_ms / 1000 + HEADROOM_S
        waiting = answered_by_node(access, lambda: node.WaitOutput(asked, timeout=within_s))
        waited = await unless_stopping(self._stopping, waiting)
        return api.WaitWorkspaceOutputResponse(
            process=waited.process,
            output=waited.output,
            reason=waited.reason,
            search_cursor=waited.search_cursor,
        )

    async def StartWorkspaceProcess(
        self, request: api.StartWorkspaceProcessRequest, context: Context
    ) -> api.StartWorkspaceProcessResponse:
        """Start a process once for each request id."""
        access = await self._workspace_access.for_changing(request.workspace_id)
        asked = process_service_pb2.StartProcessRequest(
            context=access.context(),
            request_id=access.request_id(request.request_id),
            spec=with_defaults(request.spec),
        )
        node = self._nodes.processes(access.workspace_id)
        started = await changed_by_node(
            access, request.request_id, lambda: node.StartProcess(asked, timeout=ANSWER_S)
        )
        self._files_changed(ChatId(access.named), caller_as_owner())
        return api.StartWorkspaceProcessResponse(process=started.process)

    async def WriteWorkspaceStdin(
        self, request: api.WriteWorkspaceStdinRequest, context: Context
    ) -> api.WriteWorkspaceStdinResponse:
        """Write to a process once for each request id."""
        data = request.text.encode() or request.data
        if not data and not request.end_of_input:
            raise InvalidRequest("text", "is empty: give text or data to write, or end_of_input")
        access = await self._workspace_access.for_changing(request.workspace_id)
        asked = process_service_pb2.WriteStdinRequest(
            context=access.context(),
            request_id=access.request_id(request.request_id),
            process_id=request.process_id,
            data=data,
            end_of_input=request.end_of_input,
        )
        node = self._nodes.processes(access.workspace_id)
        written = await changed_by_node(
            access, request.request_id, lambda: node.WriteStdin(asked, timeout=ANSWER_S)
        )
        self._files_changed(ChatId(access.named), caller_as_owner())
        return api.WriteWorkspaceStdinResponse(process=written.process)

    async def SignalWorkspaceProcess(
        self, request: api.SignalWorkspaceProcessRequest, context: Context
    ) -> api.SignalWorkspaceProcessResponse:
        """Signal a process once for each request id."""
        access = await self._workspace_access.for_changing(request.workspace_id)
        asked = process_service_pb2.SignalProcessRequest(
            context=access.context(),
            request_id=access.request_id(request.request_id),
            process_id=request.process_id,
            signal=request.signal,
            escalate_after_ms=request.escalate_after_ms,
        )
        node = self._nodes.processes(access.workspace_id)
        signalled = await changed_by_node(
            access, request.request_id, lambda: node.SignalProcess(asked, timeout=ANSWER_S)
        )
        return api.SignalWorkspaceProcessResponse(process=signalled.process)

    async def ListWorkspaceDirectory(
        self, request: api.ListWorkspaceDirectoryRequest, context: Context
    ) -> api.ListWorkspaceDirectoryResponse:
        """List a directory."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        if not access.is_there and not request.path.strip("./"):
            # A workspace that is not created yet is empty; listing it does not create it.
            return api.ListWorkspaceDirectoryResponse()
        asked = file_service_pb2.ListDirectoryRequest(
            context=access.context(),
            path=request.path,
            depth=request.depth,
            page_size=request.page_size,
            page_token=request.page_token,
            include_hidden=request.include_ignored,
            include_ignored=request.include_ignored,
        )
        node = self._nodes.files(access.workspace_id)
        page = await answered_by_node(access, lambda: node.ListDirectory(asked, timeout=ANSWER_S))
        return api.ListWorkspaceDirectoryResponse(
            entries=page.entries, next_page_token=page.next_page_token
        )

    async def DownloadWorkspaceFile(
        self, request: api.DownloadWorkspaceFileRequest, context: Context
    ) -> AsyncIterator[api.DownloadWorkspaceFileResponse]:
        """Stream a file from its node, with the backpressure of the caller."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        async with aclosing(self._pieces(request, access)) as pieces:
            async for piece in pieces:
                match piece.WhichOneof("piece"):
                    case "head":
                        head = api.DownloadHead(
                            info=piece.head.info, media_type=piece.head.media_type
                        )
                        yield api.DownloadWorkspaceFileResponse(head=head)
                    case "chunk":
                        yield api.DownloadWorkspaceFileResponse(chunk=piece.chunk)
                    case "closed":
                        yield api.DownloadWorkspaceFileResponse(closed=piece.closed)

    async def GetWorkspaceGitStatus(
        self, request: api.GetWorkspaceGitStatusRequest, context: Context
    ) -> api.GetWorkspaceGitStatusResponse:
        """Return how repositories differ from their last commit."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        if not access.is_there:
            return api.GetWorkspaceGitStatusResponse()
        asked = git_service_pb2.GetStatusRequest(context=access.context(access.chat_id))
        node = self._nodes.git(access.workspace_id)
        found = await answered_by_node(access, lambda: node.GetStatus(asked, timeout=ANSWER_S))
        return api.GetWorkspaceGitStatusResponse(repositories=found.repositories)

    async def WatchWorkspaceGit(
        self, request: api.WatchWorkspaceGitRequest, context: Context
    ) -> AsyncIterator[api.WatchWorkspaceGitResponse]:
        """Stream changes of repositories from the node, until it or this process stops."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        asked = git_service_pb2.WatchGitRequest(context=access.context(access.chat_id))
        with acting_for(access.user):
            call = self._nodes.git(access.workspace_id).WatchGit(asked)
        try:
            while (seen := await unless_stopping(self._stopping, _next(call))) is not None:
                if (event := _repositories_event(seen)) is not None:
                    yield event
                if seen.HasField("closed"):
                    return
        except Refusal as refusal:
            if refusal.problem is not DRAINING:
                raise problem_for_caller(access, refusal) from refusal
        finally:
            call.cancel()
        yield api.WatchWorkspaceGitResponse(
            closed=workspace_pb2.StreamEnd(reason=workspace_pb2.STREAM_END_REASON_GOING_AWAY)
        )

    async def GetWorkspaceDiff(
        self, request: api.GetWorkspaceDiffRequest, context: Context
    ) -> api.GetWorkspaceDiffResponse:
        """Return a diff."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        asked = git_service_pb2.GetDiffRequest(
            context=access.context(),
            repository=request.repository,
            base=request.base,
            target=request.target,
            paths=request.paths,
            max_bytes=request.max_bytes,
        )
        node = self._nodes.git(access.workspace_id)
        found = await answered_by_node(access, lambda: node.GetDiff(asked, timeout=ANSWER_S))
        return api.GetWorkspaceDiffResponse(
            files=found.files, patch=found.patch, truncated=found.truncated
        )

    async def CreateWorkspaceCheckpoint(
        self, request: api.CreateWorkspaceCheckpointRequest, context: Context
    ) -> api.CreateWorkspaceCheckpointResponse:
        """Store a checkpoint of all files once for each request id."""
        access = await self._workspace_access.for_changing(request.workspace_id)
        asked = git_service_pb2.CreateCheckpointRequest(
            context=access.context(),
            request_id=access.request_id(request.request_id),
            repository=request.repository,
            label=request.label,
        )
        node = self._nodes.git(access.workspace_id)
        made = await changed_by_node(
            access, request.request_id, lambda: node.CreateCheckpoint(asked, timeout=CHECKPOINT_S)
        )
        return api.CreateWorkspaceCheckpointResponse(checkpoint=made.checkpoint, files=made.files)

    async def ListWorkspaceCheckpoints(
        self, request: api.ListWorkspaceCheckpointsRequest, context: Context
    ) -> api.ListWorkspaceCheckpointsResponse:
        """List all checkpoints, regardless of their creator."""
        access = await self._workspace_access.for_reading(request.workspace_id)
        if not access.is_there:
            return api.ListWorkspaceCheckpointsResponse()
        asked = git_service_pb2.ListCheckpointsRequest(
            context=access.context(),
            repository=request.repository,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        node = self._nodes.git(access.workspace_id)
        page = await answered_by_node(access, lambda: node.ListCheckpoints(asked, timeout=ANSWER_S))
        return api.ListWorkspaceCheckpointsResponse(
            checkpoints=page.checkpoints, next_page_token=page.next_page_token
        )

    async def RestoreWorkspaceCheckpoint(
        self, request: api.RestoreWorkspaceCheckpointRequest, context: Context
    ) -> api.RestoreWorkspaceCheckpointResponse:
        """Restore files once for each request id."""
        access = await self._workspace_access.for_changing(request.workspace_id)
        asked = git_service_pb2.RestoreCheckpointRequest(
            context=access.context(),
            request_id=access.request_id(request.request_id),
            repository=request.repository,
            ref=request.ref,
            paths=request.paths,
            if_unchanged_since_ref=request.if_unchanged_since_ref,
            remove_later_files=request.remove_later_files,
        )
        node = self._nodes.git(access.workspace_id)
        restored = await changed_by_node(
            access, request.request_id, lambda: node.RestoreCheckpoint(asked, timeout=CHECKPOINT_S)
        )
        self._files_changed(ChatId(access.named), caller_as_owner())
        return api.RestoreWorkspaceCheckpointResponse(
            files=restored.files, previous=restored.previous
        )

    async def _pieces(
        self, request: api.DownloadWorkspaceFileRequest, access: AuthorizedAccess
    ) -> AsyncGenerator[file_service_pb2.ReadBytesResponse, None]:
        asked = file_service_pb2.ReadBytesRequest(
            context=access.context(),
            path=request.path,
            offset_bytes=request.offset_bytes,
            length_bytes=request.length_bytes,
        )
        # Not around the iteration: a generator may be resumed in another context.
        with acting_for(access.user):
            stub = self._nodes.files(access.workspace_id)
            call = stub.ReadBytes(asked, timeout=DOWNLOAD_S)
        try:
            async for piece in call:
                yield piece
        except grpc.aio.AioRpcError as error:
            raise problem_for_caller(access, node_error_of(error)) from error
        finally:
            call.cancel()


def with_defaults(spec: process_pb2.ProcessSpec) -> process_pb2.ProcessSpec:
    """Return what a user starts, with the standard input and the size of terminal it leaves out."""
    filled = process_pb2.ProcessSpec()
    filled.CopyFrom(spec)
    if spec.HasField("terminal"):
        filled.terminal.rows = spec.terminal.rows or ROWS
        filled.terminal.columns = spec.terminal.columns or COLUMNS
    if not spec.stdin_mode:
        has_terminal = spec.HasField("terminal")
        filled.stdin_mode = (
            process_pb2.STDIN_MODE_TERMINAL if has_terminal else process_pb2.STDIN_MODE_CLOSED
        )
    return filled


async def _next(call: Any) -> git_service_pb2.WatchGitResponse | None:
    """Return the next event of a node's repositories; None at the end of the stream."""
    seen = await answered(call.read())
    return seen if isinstance(seen, git_service_pb2.WatchGitResponse) else None


def _repositories_event(
    seen: git_service_pb2.WatchGitResponse,
) -> api.WatchWorkspaceGitResponse | None:
    """Convert an event for the caller; None if nothing changed."""
    match seen.WhichOneof("kind"):
        case "snapshot":
            all_of_them = api.WorkspaceRepositories(repositories=seen.snapshot.repositories)
            return api.WatchWorkspaceGitResponse(snapshot=all_of_them)
        case "changed":
            return api.WatchWorkspaceGitResponse(changed=seen.changed)
        case "removed":
            return api.WatchWorkspaceGitResponse(removed=seen.removed.repository)
        case "closed":
            return api.WatchWorkspaceGitResponse(closed=seen.closed)
        case _:
            return None
