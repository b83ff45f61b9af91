"""HTTP routes of a chat's workspace: downloads of files, and events of its repositories."""

import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC
from email.utils import format_datetime
from typing import Any, Final
from urllib.parse import quote

import grpc
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gateway.api.events import GIT_EVENTS, git_event
from gateway.api.json_output import to_json
from gateway.api.parameters import path_id
from gateway.http.authentication import Principal
from gateway.http.byte_ranges import ByteRange, range_of
from gateway.http.preconditions import changed_if, if_match, request_id_for, tagged
from gateway.http.problems.errors import HttpProblem
from gateway.http.request_body import (
    event_types,
    idempotency_key,
    invalid_parameter,
    read_bytes,
    read_query,
)
from gateway.http.responses import json_response
from gateway.routes.files import (
    CHUNK_BYTES_MAX,
    FILE_BYTES_MAX,
    SILENCE_S_MAX,
    UPLOAD_S_MAX,
    file_too_large,
)
from gateway.routes.upload_slots import UploadSlots
from gateway.streams.watch_stream import StreamFactory, WatchStream, opened
from gateway.streams.workspace_client import Workspaces
from parley.api.workspace.v1 import file_pb2, workspace_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.clock import Clock, patient

DOWNLOAD_S_MAX: Final = 3600.0
UNKNOWN_TYPE: Final = "application/octet-stream"

_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+(?:; ?charset=[\w-]+)?", re.ASCII)
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._ -]")


class DownloadCutOff(Exception):
    """The node's stream ended early; the connection is closed, since the response has started."""


class WorkspaceFileRoutes:
    """Downloads and uploads of files, and the stream of repositories."""

    def __init__(
        self,
        workspaces: Workspaces,
        *,
        stream: StreamFactory,
        new_id: Callable[[], str],
        clock: Clock,
        slots: UploadSlots,
    ) -> None:
        self._workspaces = workspaces
        self._stream = stream
        self._new_id = new_id
        self._clock = clock
        self._slots = slots

    async def upload(self, request: Request, principal: Principal) -> Response:
        """Write a file; with If-Match only if its content has that hash."""
        query = read_query(request, "path", "create_only")
        if not query.get("path"):
            raise invalid_parameter("path", "Name the file.")
        if query.get("create_only", "false") not in ("true", "false"):
            raise invalid_parameter("create_only", "Give true or false.")
        tags = if_match(request)
        with self._slots.taken(principal.user.id):
            # The body is read completely before the call, so that it can be retried at another
            # process.
            data = await read_bytes(
                request,
                file_too_large(),
                bytes_max=FILE_BYTES_MAX,
                s_max=UPLOAD_S_MAX,
                pieces=patient(request.stream(), silence_s=SILENCE_S_MAX, clock=self._clock),
            )
            request_id = idempotency_key(request) or self._new_id()
            head = api.UploadWorkspaceFileHead(
                chat_id=path_id(request, "chat_id"),
                path=query["path"],
                create_only=query.get("create_only") == "true",
                size_bytes=len(data),
            )

            async def write(tag: str) -> Any:
                head.if_etag = tag
                head.request_id = request_id_for(tag, tags, request_id)
                return await self._workspaces.ask(
                    principal.user,
                    head.chat_id,
                    lambda stub: stub.UploadWorkspaceFile(
                        _pieces(head, data), timeout=UPLOAD_S_MAX
                    ),
                )

            answer = await changed_if(tags, write)
        return json_response(to_json(answer.change), headers=tagged(answer.change.etag))

    async def download(self, request: Request, principal: Principal) -> Response:
        """Stream a file, or a byte range of it, from its node."""
        path = read_query(request, "path").get("path", "")
        if not path:
            raise invalid_parameter("path", "Name the file.")
        asked = api.DownloadWorkspaceFileRequest(
            workspace_id=path_id(request, "chat_id"), path=path
        )
        # There is no validator for If-Range, so the whole file is returned.
        is_conditional = "if-range" in request.headers
        wanted = None if is_conditional else range_of(request.headers.get("range"))
        if wanted is not None:
            await self._narrow(principal, asked, wanted)
        call, head = await self._begun(principal, asked)
        size_bytes = head.info.size_bytes
        # The file's size may have changed; the response is the requested range as far as it exists.
        end = asked.offset_bytes + asked.length_bytes if wanted is not None else size_bytes
        span = range(asked.offset_bytes, min(end, size_bytes))
        if wanted is not None and not span:
            call.cancel()
            raise _not_satisfiable(size_bytes)
        headers = _headers(head) | {"content-length": str(len(span))}
        if wanted is not None:
            headers["content-range"] = f"bytes {span.start}-{span.stop - 1}/{size_bytes}"
        if request.method == "HEAD":
            call.cancel()
            return Response(status_code=200 if wanted is None else 206, headers=headers)
        return StreamingResponse(
            _written(call, len(span)), status_code=200 if wanted is None else 206, headers=headers
        )

    async def git_events(self, request: Request, principal: Principal) -> WatchStream:
        """Stream the repositories of the chat: first all of them, then changed ones."""
        kinds = event_types(read_query(request, "types"), GIT_EVENTS)
        chat_id = path_id(request, "chat_id")
        asked = api.WatchWorkspaceGitRequest(workspace_id=chat_id)
        # The first message is read here, so that an error is still returned as a problem document.
        over = api.WatchWorkspaceGitResponse(closed=workspace_pb2.StreamEnd())
        call, first = await self._workspaces.ask(
            principal.user, chat_id, lambda stub: opened(stub.WatchWorkspaceGit(asked), over)
        )
        about = {"chat_id": chat_id}
        return WatchStream(self._stream(principal, about, kinds), call, first, git_event, about)

    async def _narrow(
        self, principal: Principal, asked: api.DownloadWorkspaceFileRequest, wanted: ByteRange
    ) -> None:
        """Set the requested range; its start and end may depend on the size."""
        probe = api.DownloadWorkspaceFileRequest(
            workspace_id=asked.workspace_id, path=asked.path, length_bytes=1
        )
        call, head = await self._begun(principal, probe)
        call.cancel()
        span = wanted.within(head.info.size_bytes)
        if span is None:
            raise _not_satisfiable(head.info.size_bytes)
        asked.offset_bytes, asked.length_bytes = span.start, len(span)

    async def _begun(
        self, principal: Principal, asked: api.DownloadWorkspaceFileRequest
    ) -> tuple[Any, api.DownloadHead]:
        # The head is read here, so that an error is still returned as a problem document.
        return await self._workspaces.ask(
            principal.user,
            asked.workspace_id,
            lambda stub: _head_of(stub.DownloadWorkspaceFile(asked, timeout=DOWNLOAD_S_MAX)),
        )


def _pieces(
    head: api.UploadWorkspaceFileHead, data: bytes
) -> Iterator[api.UploadWorkspaceFileRequest]:
    yield api.UploadWorkspaceFileRequest(head=head)
    for place in range(0, len(data), CHUNK_BYTES_MAX):
        yield api.UploadWorkspaceFileRequest(chunk=data[place : place + CHUNK_BYTES_MAX])


async def _head_of(call: Any) -> tuple[Any, api.DownloadHead]:
    first = await call.read()
    if first is grpc.aio.EOF or first.WhichOneof("piece") != "head":
        call.cancel()
        raise DownloadCutOff
    return call, first.head


async def _written(call: Any, length_bytes: int) -> AsyncIterator[bytes]:
    """Yield exactly the announced number of bytes, even if the file changed meanwhile."""
    left_bytes = length_bytes
    try:
        while left_bytes:
            piece = await call.read()
            if piece is grpc.aio.EOF or piece.WhichOneof("piece") != "chunk":
                raise DownloadCutOff
            chunk = piece.chunk[:left_bytes]
            left_bytes -= len(chunk)
            yield chunk
    except grpc.aio.AioRpcError as error:
        raise DownloadCutOff from error
    finally:
        call.cancel()


def _headers(head: api.DownloadHead) -> dict[str, str]:
    """Return the headers of a file; browsers must not show it inline."""
    is_sound = _MEDIA_TYPE.fullmatch(head.media_type) is not None
    headers = {
        "content-type": head.media_type if is_sound else UNKNOWN_TYPE,
        "content-disposition": _attachment(head.info),
        "accept-ranges": "bytes",
    }
    if head.info.HasField("modified_at"):
        modified_at = head.info.modified_at.ToDatetime(tzinfo=UTC)
        headers["last-modified"] = format_datetime(modified_at, usegmt=True)
    return headers


def _attachment(info: file_pb2.PathInfo) -> str:
    name = info.path.rpartition("/")[2] or "file"
    plain = _NOT_PLAIN.sub("_", name)
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='')}"


def _not_satisfiable(size_bytes: int) -> HttpProblem:
    return HttpProblem(
        416,
        "RANGE_NOT_SATISFIABLE",
        f"The file has {size_bytes} bytes; ask for some of them.",
        headers={"content-range": f"bytes */{size_bytes}"},
        facts={"size_bytes": size_bytes},
    )
