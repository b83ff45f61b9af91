"""FileService: each method parses the request, makes one call, and encodes the response."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import grpc

from parley.api.workspace.v1 import file_service_pb2 as api
from parley.api.workspace.v1 import workspace_pb2
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceServicer
from toolrunner.files.changes import ChangeResult
from toolrunner.files.rpc import convert, inputs
from toolrunner.files.service import FileService, UndoRequest
from toolrunner.fileworker import protocol
from toolrunner.primitives.errors import InvalidRequest
from toolrunner.processes.rpc.inputs import scope_of
from toolrunner.processes.rpc.reached import NothingReached, ReachRecord, begun_call, with_reached

#: The time after the limit of a search to end it and answer.
SEARCH_GRACE_S: Final = 10.0
#: Walking a million entries takes long.
FIND_S: Final = 120.0


class FileServicer(FileServiceServicer):
    """Serves the files of this node's workspaces."""

    def __init__(self, files: FileService, reach: ReachRecord | None = None) -> None:
        self._files = files
        self._reach = reach or NothingReached()

    async def ReadFile(  # noqa: N802 (the name is the proto's)
        self, request: api.ReadFileRequest, context: grpc.aio.ServicerContext
    ) -> api.ReadFileResponse:
        """Read a page of lines, or an image."""
        call = await begun_call(self._reach, request.context)
        scope, asked = scope_of(request.context), inputs.read_of(request)
        if request.without_suggestions:
            await self._files.require_present(scope, asked.path, in_home=asked.in_home)
        page = await self._files.read(scope, asked)
        response = convert.page_to_proto(page)
        return with_reached(response, await call.hosts())

    async def ReadBytes(  # noqa: N802 (the name is the proto's)
        self, request: api.ReadBytesRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.ReadBytesResponse]:
        """Read bytes: the head first, then chunks."""
        pieces = self._files.stream(scope_of(request.context), inputs.bytes_of(request))
        async with aclosing(pieces):
            async for piece in pieces:
                match piece:
                    case protocol.BytesHead(info, media_type):
                        head = api.BytesHead(
                            info=convert.info_to_proto(info), media_type=media_type
                        )
                        yield api.ReadBytesResponse(head=head)
                    case protocol.Chunk(data):
                        yield api.ReadBytesResponse(chunk=data)
        complete = workspace_pb2.STREAM_END_REASON_COMPLETE
        yield api.ReadBytesResponse(closed=workspace_pb2.StreamEnd(reason=complete))

    async def WriteFile(  # noqa: N802 (the name is the proto's)
        self, request: api.WriteFileRequest, context: grpc.aio.ServicerContext
    ) -> api.WriteFileResponse:
        """Write a whole file."""
        call = await begun_call(self._reach, request.context)
        scope = scope_of(request.context)
        effect = inputs.file_effect_of(request, scope, "WriteFile")
        plan = inputs.write_of(request, self._files.new_token())
        response = await self._files.change(effect, scope, plan, _encode_written)
        return with_reached(api.WriteFileResponse.FromString(response), await call.hosts())

    async def UploadFile(  # noqa: N802 (the name is the proto's)
        self,
        request_iterator: AsyncIterator[api.UploadFileRequest],
        context: grpc.aio.ServicerContext,
    ) -> api.UploadFileResponse:
        """Write a whole file whose bytes arrive in chunks."""
        head = await _head(request_iterator)
        scope = scope_of(head.context)
        inputs.upload_effect_of(head, scope, b"")
        start = inputs.upload_of(head, self._files.new_token())
        sha256 = hashlib.sha256()
        plan = await self._files.stage(scope, start, _chunks(request_iterator, sha256))
        try:
            effect = inputs.upload_effect_of(head, scope, sha256.digest())
            response = await self._files.change(effect, scope, plan, _encode_uploaded)
        finally:
            await self._files.unstage(scope, start)
        return api.UploadFileResponse.FromString(response)

    async def EditFiles(  # noqa: N802 (the name is the proto's)
        self, request: api.EditFilesRequest, context: grpc.aio.ServicerContext
    ) -> api.EditFilesResponse:
        """Replace texts in several files, all or nothing."""
        call = await begun_call(self._reach, request.context)
        scope = scope_of(request.context)
        effect = inputs.file_effect_of(request, scope, "EditFiles")
        plan = inputs.edits_of(request, self._files.new_token())

        def encode(changed: ChangeResult) -> bytes:
            return api.EditFilesResponse(
                applied=not changed.planned.problems and not request.dry_run,
                changes=convert.changes_to_proto(changed),
                problems=convert.problems_to_proto(changed),
            ).SerializeToString()

        response = await self._files.change(effect, scope, plan, encode, dry_run=request.dry_run)
        return with_reached(api.EditFilesResponse.FromString(response), await call.hosts())

    async def ApplyPatch(  # noqa: N802 (the name is the proto's)
        self, request: api.ApplyPatchRequest, context: grpc.aio.ServicerContext
    ) -> api.ApplyPatchResponse:
        """Apply a patch, all or nothing."""
        call = await begun_call(self._reach, request.context)
        scope = scope_of(request.context)
        effect = inputs.file_effect_of(request, scope, "ApplyPatch")
        plan = inputs.patch_of(request, self._files.new_token())

        def encode(changed: ChangeResult) -> bytes:
            return api.ApplyPatchResponse(
                applied=not changed.planned.problems and not request.dry_run,
                changes=convert.changes_to_proto(changed),
                problems=convert.problems_to_proto(changed),
            ).SerializeToString()

        response = await self._files.change(effect, scope, plan, encode, dry_run=request.dry_run)
        return with_reached(api.ApplyPatchResponse.FromString(response), await call.hosts())

    async def UndoEdit(  # noqa: N802 (the name is the proto's)
        self, request: api.UndoEditRequest, context: grpc.aio.ServicerContext
    ) -> api.UndoEditResponse:
        """Restore files to their state before a change."""
        call = await begun_call(self._reach, request.context)
        scope = scope_of(request.context)
        effect = inputs.file_effect_of(request, scope, "UndoEdit")
        if request.WhichOneof("target") is None:
            raise InvalidRequest("target", "is missing; give edit_request_id or path")
        path = inputs.path_of(request.path, may_be_empty=bool(request.edit_request_id))
        guards_git = inputs.guards_git(request.context, path)
        undoing = UndoRequest(request.edit_request_id, path, guards_git)
        response = await self._files.undo(effect, scope, undoing, _encode_undone)
        return with_reached(api.UndoEditResponse.FromString(response), await call.hosts())

    async def ListDirectory(  # noqa: N802 (the name is the proto's)
        self, request: api.ListDirectoryRequest, context: grpc.aio.ServicerContext
    ) -> api.ListDirectoryResponse:
        """List a directory, some levels deep."""
        call = await begun_call(self._reach, request.context)
        asked = inputs.list_of(request)
        listing = await self._files.ask(scope_of(request.context), asked, protocol.Listing)
        return with_reached(convert.listing_to_proto(listing), await call.hosts())

    async def SearchFiles(  # noqa: N802 (the name is the proto's)
        self, request: api.SearchFilesRequest, context: grpc.aio.ServicerContext
    ) -> AsyncIterator[api.SearchFilesResponse]:
        """Search the content of files."""
        call = await begun_call(self._reach, request.context)
        asked = inputs.search_of(request)
        limit_s = asked.timeout_s + SEARCH_GRACE_S
        pieces = self._files.stream(scope_of(request.context), asked, limit_s=limit_s)
        async with aclosing(pieces):
            async for piece in pieces:
                match piece:
                    case protocol.Matches(files) if request.batched:
                        yield convert.batch_to_proto(files)
                    case protocol.Matches(files):
                        for file in files:
                            yield api.SearchFilesResponse(file=convert.matches_to_proto(file))
                    case protocol.Summary():
                        response = convert.summary_to_proto(piece)
                        with_reached(response.summary, await call.hosts())
                        yield response

    async def FindFiles(  # noqa: N802 (the name is the proto's)
        self, request: api.FindFilesRequest, context: grpc.aio.ServicerContext
    ) -> api.FindFilesResponse:
        """Find files by name."""
        call = await begun_call(self._reach, request.context)
        asked = inputs.find_of(request)
        scope = scope_of(request.context)
        if request.without_suggestions:
            await self._files.require_present(scope, asked.path)
        found = await self._files.ask(scope, asked, protocol.FoundFiles, limit_s=FIND_S)
        return with_reached(convert.found_to_proto(found), await call.hosts())

    async def StatPath(  # noqa: N802 (the name is the proto's)
        self, request: api.StatPathRequest, context: grpc.aio.ServicerContext
    ) -> api.StatPathResponse:
        """Return the metadata of a path."""
        path = inputs.path_of(request.path, may_be_empty=True)
        asked = protocol.StatPath(path, request.no_follow, request.with_etag)
        stat = await self._files.ask(scope_of(request.context), asked, protocol.Stat)
        return convert.stat_to_proto(stat)

    async def MakeDirectory(  # noqa: N802 (the name is the proto's)
        self, request: api.MakeDirectoryRequest, context: grpc.aio.ServicerContext
    ) -> api.MakeDirectoryResponse:
        """Create a directory and its parents."""
        scope = scope_of(request.context)
        effect = inputs.file_effect_of(request, scope, "MakeDirectory")
        guards_git = inputs.guards_git(request.context, request.path)
        asked = protocol.MakeDirectory(inputs.path_of(request.path), guards_git)
        response = await self._files.act(effect, scope, asked, _encode_made)
        return api.MakeDirectoryResponse.FromString(response)

    async def MovePath(  # noqa: N802 (the name is the proto's)
        self, request: api.MovePathRequest, context: grpc.aio.ServicerContext
    ) -> api.MovePathResponse:
        """Move a file or directory to another path."""
        scope = scope_of(request.context)
        effect = inputs.file_effect_of(request, scope, "MovePath")
        plan = protocol.PlanMove(
            token=self._files.new_token(),
            path=inputs.path_of(request.path),
            new_path=inputs.path_of(request.new_path, "new_path"),
            overwrite=request.overwrite,
            guards_git=inputs.guards_git(request.context, request.path),
        )
        response = await self._files.change(effect, scope, plan, _encode_moved)
        return api.MovePathResponse.FromString(response)

    async def DeletePath(  # noqa: N802 (the name is the proto's)
        self, request: api.DeletePathRequest, context: grpc.aio.ServicerContext
    ) -> api.DeletePathResponse:
        """Delete a file or directory."""
        scope = scope_of(request.context)
        effect = inputs.file_effect_of(request, scope, "DeletePath")
        guards_git = inputs.guards_git(request.context, request.path)
        plan = protocol.PlanDelete(
            token=self._files.new_token(),
            path=inputs.path_of(request.path),
            recursive=request.recursive,
            guards_git=guards_git,
        )
        response = await self._files.change(effect, scope, plan, _encode_deleted)
        return api.DeletePathResponse.FromString(response)


def _encode_written(changed: ChangeResult) -> bytes:
    [change] = convert.changes_to_proto(changed)
    return api.WriteFileResponse(change=change).SerializeToString()


def _encode_uploaded(changed: ChangeResult) -> bytes:
    [change] = convert.changes_to_proto(changed)
    return api.UploadFileResponse(change=change).SerializeToString()


def _encode_undone(changed: ChangeResult) -> bytes:
    return api.UndoEditResponse(changes=convert.changes_to_proto(changed)).SerializeToString()


def _encode_made(answer: protocol.Answer) -> bytes:
    assert isinstance(answer, protocol.Count), "each request has its answer"
    return api.MakeDirectoryResponse(created=answer.count > 0).SerializeToString()


def _encode_moved(changed: ChangeResult) -> bytes:
    assert changed.done.info is not None, "whatever was moved is told of"
    return api.MovePathResponse(info=convert.info_to_proto(changed.done.info)).SerializeToString()


def _encode_deleted(changed: ChangeResult) -> bytes:
    return api.DeletePathResponse(deleted_entries=changed.done.count).SerializeToString()


async def _head(pieces: AsyncIterator[api.UploadFileRequest]) -> api.UploadFileHead:
    async for piece in pieces:
        if piece.WhichOneof("piece") == "head":
            return piece.head
        break
    raise InvalidRequest("head", "is missing; it comes first")


async def _chunks(
    pieces: AsyncIterator[api.UploadFileRequest], sha256: "hashlib._Hash"
) -> AsyncIterator[bytes]:
    async for piece in pieces:
        if piece.WhichOneof("piece") != "chunk" or len(piece.chunk) > inputs.CHUNK_BYTES_MAX:
            problem = f"follows the head, in pieces of at most {inputs.CHUNK_BYTES_MAX} bytes"
            raise InvalidRequest("chunk", problem)
        sha256.update(piece.chunk)
        yield piece.chunk
