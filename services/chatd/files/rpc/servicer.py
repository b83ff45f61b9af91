"""FileService: uploads and downloads of files in chunks."""

import uuid
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

import grpc

from chatd.chats.domain.views import StoredFile
from chatd.content.domain.errors import FileNotFound, FileTooLarge
from chatd.content.domain.files import FILE_BYTES_MAX, clean_name, confirmed
from chatd.files.rpc.upload_slots import UploadSlots
from chatd.files.store.files import StoredFiles
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.errors import InvalidRequest
from chatd.primitives.domain.ids import OwnerId
from chatd.primitives.rpc import fields
from chatd.primitives.rpc.times import time_to_proto
from chatd.users.domain.groups import Groups
from chatd.users.rpc.callers import caller_as_owner, caller_as_reader
from parley.api.chat.v1 import file_pb2
from parley.api.chat.v1 import file_service_pb2 as api
from parley.api.chat.v1.file_service_pb2_grpc import FileServiceServicer
from parley.clock import Clock, patient
from parley.rpc import check_request

Context = grpc.aio.ServicerContext

CHUNK_BYTES_MAX: Final = 256 * 1024
#: Bytes that a download holds in memory; for each read the database reads the file from its start.
RANGE_BYTES: Final = 2 * 1024 * 1024
PAGE_SIZE: Final = 50
FIRST_ID: Final = "00000000-0000-0000-0000-000000000000"
#: The longest time that an upload may send nothing.
SILENCE_S: Final = 60.0


class FileServicer(FileServiceServicer):
    """Serves files; the server's error table converts errors to problems."""

    def __init__(self, files: StoredFiles, groups: Groups, clock: Clock) -> None:
        self._files = files
        self._groups = groups
        self._clock = clock
        self._slots = UploadSlots()

    async def UploadFile(
        self, request_iterator: AsyncIterator[api.UploadFileRequest], context: Context
    ) -> api.UploadFileResponse:
        """Store a file of the caller."""
        owner_id = caller_as_owner().id
        async with self._slots.taken(owner_id):
            head, data = await self._received(request_iterator)
            check_request(head)
            name = clean_name(head.name)
            file = FileData(name, confirmed(head.media_type, name, data), data)
            file_id = _derived_id(owner_id, head.request_id)
            stored = await self._files.put(file_id, owner_id, file, request_id=head.request_id)
        return api.UploadFileResponse(file=_file_to_proto(stored))

    async def GetFile(self, request: api.GetFileRequest, context: Context) -> api.GetFileResponse:
        """Return the metadata of a file."""
        file_id = _file_id_of(request.file_id)
        file = await self._files.get(file_id, await caller_as_reader(self._groups))
        return api.GetFileResponse(file=_file_to_proto(file))

    async def ListFiles(
        self, request: api.ListFilesRequest, context: Context
    ) -> api.ListFilesResponse:
        """Return a page of the caller's files."""
        after = fields.uuid_of(request.page_token or FIRST_ID, "page_token")
        size = request.page_size or PAGE_SIZE
        files = await self._files.own(caller_as_owner().id, after, size + 1)
        page = files[:size]
        token = page[-1].id if len(files) > size else ""
        return api.ListFilesResponse(files=map(_file_to_proto, page), next_page_token=token)

    async def DownloadFile(
        self, request: api.DownloadFileRequest, context: Context
    ) -> AsyncIterator[api.DownloadFileResponse]:
        """Stream a file or a byte range of it."""
        file_id = _file_id_of(request.file_id)
        reader = await caller_as_reader(self._groups)
        file = await self._files.get(file_id, reader)
        at, length = request.offset_bytes, request.length_bytes
        if at > file.size_bytes:
            raise InvalidRequest("offset_bytes", f"is not between 0 and {file.size_bytes}")
        end = min(file.size_bytes, at + length) if length else file.size_bytes
        yield api.DownloadFileResponse(file=_file_to_proto(file))
        while at < end:
            data = await self._files.read_range(
                file_id, reader, offset_bytes=at, length_bytes=min(RANGE_BYTES, end - at)
            )
            for place in range(0, len(data), CHUNK_BYTES_MAX):
                piece = data[place : place + CHUNK_BYTES_MAX]
                at += len(piece)
                yield _chunk(piece, is_last=at >= end)
        if at == request.offset_bytes:
            yield _chunk(b"", is_last=True)

    async def _received(
        self, requests: AsyncIterator[api.UploadFileRequest]
    ) -> tuple[api.UploadHead, bytes]:
        """Return the head and the bytes of an upload."""
        pieces = patient(requests, silence_s=SILENCE_S, clock=self._clock)
        try:
            async with aclosing(pieces):
                return await _joined(pieces)
        except TimeoutError:
            text = f"nothing came for {SILENCE_S:g} s; upload the file again"
            raise InvalidRequest("piece", text) from None


async def _joined(
    requests: AsyncIterator[api.UploadFileRequest],
) -> tuple[api.UploadHead, bytes]:
    """Return the head and the bytes of an upload; stop reading when the file is too large."""
    head: api.UploadHead | None = None
    data = bytearray()
    async for request in requests:
        match request.WhichOneof("piece"):
            case "head" if head is None:
                head = request.head
            case "chunk" if head is not None:
                data += request.chunk
            case _:
                raise InvalidRequest("piece", "send the head first and once, then chunks")
        if len(data) > FILE_BYTES_MAX:
            raise FileTooLarge(FILE_BYTES_MAX)
    if head is None:
        raise InvalidRequest("head", "send the head first, then chunks")
    return head, bytes(data)


def _derived_id(owner_id: OwnerId, request_id: str) -> str:
    """Return a file id derived from the user and the request, the same for every retry."""
    return str(uuid.uuid5(uuid.UUID(owner_id), f"upload {request_id}"))


def _file_id_of(text: str) -> str:
    try:
        return fields.uuid_of(text, "file_id")
    except InvalidRequest:
        raise FileNotFound(text) from None


def _chunk(data: bytes, *, is_last: bool) -> api.DownloadFileResponse:
    return api.DownloadFileResponse(chunk=api.FileChunk(data=data, last=is_last))


def _file_to_proto(file: StoredFile) -> file_pb2.File:
    return file_pb2.File(
        id=file.id,
        owner_id=file.owner_id,
        name=file.name,
        media_type=file.media_type,
        size_bytes=file.size_bytes,
        sha256=file.sha256.hex(),
        created_at=time_to_proto(file.created_at),
    )
