"""HTTP routes of files: upload and download."""

from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Final

import grpc
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from gateway.api.json_output import to_json
from gateway.api.parameters import path_id
from gateway.http.authentication import Principal
from gateway.http.file_headers import (
    BYTES,
    TOLD,
    Span,
    disposition,
    name_in,
    requested_span,
    served_media_type,
)
from gateway.http.preconditions import is_known, tagged
from gateway.http.problems.errors import HttpProblem
from gateway.http.request_body import idempotency_key, invalid_parameter, read_bytes, read_query
from gateway.http.responses import json_response
from gateway.routes.upload_slots import UploadSlots
from gateway.streams.chatd_client import ChatdClient
from parley.api.chat.v1 import file_pb2
from parley.api.chat.v1 import file_service_pb2 as api
from parley.clock import Clock, patient

FILE_BYTES_MAX: Final = 10 * 1024 * 1024
UPLOAD_S_MAX: Final = 120.0
DOWNLOAD_S_MAX: Final = 3600.0
CHUNK_BYTES_MAX: Final = 256 * 1024
#: Longest time without a byte.
SILENCE_S_MAX: Final = 15.0
UPLOADED_TYPES: Final = (*sorted(TOLD), BYTES)
#: A file never changes. It is served with headers that prevent active content.
FILE_HEADERS: Final = {
    "accept-ranges": "bytes",
    "cache-control": "private, max-age=31536000, immutable",
    "content-security-policy": "default-src 'none'; sandbox; frame-ancestors 'none'",
}


class DownloadCutOff(Exception):
    """chatd's stream ended early; the connection is closed, since the response has started."""


class FileRoutes:
    """The routes under /files."""

    def __init__(
        self, chatd: ChatdClient, *, new_id: Callable[[], str], clock: Clock, slots: UploadSlots
    ) -> None:
        self._chatd = chatd
        self._new_id = new_id
        self._clock = clock
        self._slots = slots

    async def upload(self, request: Request, principal: Principal) -> Response:
        """Store a file; its name is a parameter, or in the Content-Disposition."""
        query = read_query(request, "name")
        name = query.get("name") or name_in(request.headers.get("content-disposition", ""))
        if not name:
            raise invalid_parameter("name", "Give the name of the file, such as report.pdf.")
        head = api.UploadHead(
            request_id=idempotency_key(request) or self._new_id(),
            name=name,
            media_type=request.headers.get("content-type", ""),
        )
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
            answer = await self._chatd.ask_any(
                principal.user,
                lambda stubs: stubs.files.UploadFile(_pieces(head, data), timeout=UPLOAD_S_MAX),
            )
        location = f"/api/v1/files/{answer.file.id}"
        return json_response(to_json(answer.file), status=201, headers={"location": location})

    async def download(self, request: Request, principal: Principal) -> Response:
        """Return a file, or a byte range of it."""
        read_query(request)
        file = await self._known(request, principal)
        headers = {
            **FILE_HEADERS,
            **tagged(file.sha256),
            "content-disposition": disposition(file.name, file.media_type),
        }
        if is_known(request, file.sha256):
            return Response(status_code=304, headers=headers)
        headers["content-type"] = served_media_type(file.media_type)
        span = _span(request, file)
        status = 200
        if span is None:
            span = Span(0, file.size_bytes)
        else:
            status, headers["content-range"] = 206, span.of(file.size_bytes)
        headers["content-length"] = str(span.length)
        if request.method == "HEAD":
            return Response(status_code=status, headers=headers)
        body = await self._opened(principal, file.id, span)
        return StreamingResponse(body, status_code=status, headers=headers)

    async def _known(self, request: Request, principal: Principal) -> file_pb2.File:
        asked = api.GetFileRequest(file_id=path_id(request, "file_id"))
        answer = await self._chatd.ask_any(principal.user, lambda stubs: stubs.files.GetFile(asked))
        return answer.file

    async def _opened(self, principal: Principal, file_id: str, span: Span) -> AsyncIterator[bytes]:
        """Return the bytes; the first response is read before the HTTP response starts."""
        asked = api.DownloadFileRequest(
            file_id=file_id, offset_bytes=span.first, length_bytes=span.length
        )
        call = await self._chatd.ask_any(
            principal.user,
            lambda stubs: _begun(stubs.files.DownloadFile(asked, timeout=DOWNLOAD_S_MAX)),
        )
        return _read(call)


def _span(request: Request, file: file_pb2.File) -> Span | None:
    condition = request.headers.get("if-range", "").strip()
    if condition and condition != f'"{file.sha256}"':
        return None
    return requested_span(request.headers.get("range", ""), file.size_bytes)


def _pieces(head: api.UploadHead, data: bytes) -> Iterator[api.UploadFileRequest]:
    yield api.UploadFileRequest(head=head)
    for place in range(0, len(data), CHUNK_BYTES_MAX):
        yield api.UploadFileRequest(chunk=data[place : place + CHUNK_BYTES_MAX])


async def _begun(call: Any) -> Any:
    """Return a download after its head was read, so that an error is returned as a problem."""
    if await call.read() is grpc.aio.EOF:
        raise DownloadCutOff
    return call


async def _read(call: Any) -> AsyncIterator[bytes]:
    try:
        while (piece := await call.read()) is not grpc.aio.EOF:
            yield piece.chunk.data
            if piece.chunk.last:
                return
        raise DownloadCutOff
    except grpc.aio.AioRpcError as error:
        raise DownloadCutOff from error
    finally:
        call.cancel()


def file_too_large() -> HttpProblem:
    """Return the problem of a file with too many bytes."""
    return HttpProblem(
        413,
        "FILE_TOO_LARGE",
        f"A file may have {FILE_BYTES_MAX} bytes; send a smaller one.",
        headers={"connection": "close"},
        facts={"limit_bytes": FILE_BYTES_MAX},
    )
