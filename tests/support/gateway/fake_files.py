"""Files in memory behind the real methods; whoever uploaded one may read it."""

import uuid
from collections.abc import AsyncIterator, Callable
from hashlib import sha256
from typing import Any

import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from parley.api.chat.v1 import file_pb2
from parley.api.chat.v1 import file_service_pb2 as api
from parley.api.chat.v1.file_service_pb2_grpc import FileServiceServicer
from parley.rpc import Problem, Refusal, current_caller

FILE_NOT_FOUND = Problem(grpc.StatusCode.NOT_FOUND, "FILE_NOT_FOUND", "There is no such file.")
CHUNK_BYTES = 100_000


class FakeFiles(FileServiceServicer):
    """Keeps what is uploaded, believing its head.

    Attributes:
        kept: The files and their bytes by id.
        pieces: How many pieces the last upload had.
        is_cut_off: Whether downloads end before their end.
    """

    def __init__(self, take: Callable[[Any], None]) -> None:
        self._take = take
        self.kept: dict[str, tuple[file_pb2.File, bytes]] = {}
        self.pieces = 0
        self.is_cut_off = False

    def keep(self, owner_id: str, name: str, media_type: str, data: bytes) -> str:
        """Put a file there, and return its id."""
        file_id = str(uuid.uuid5(uuid.UUID(owner_id), f"{name} {len(self.kept)}"))
        file = file_pb2.File(
            id=file_id,
            owner_id=owner_id,
            name=name,
            media_type=media_type,
            size_bytes=len(data),
            sha256=sha256(data).hexdigest(),
            created_at=Timestamp(seconds=1_800_000_000),
        )
        self.kept[file_id] = (file, data)
        return file_id

    async def UploadFile(self, request_iterator: Any, context: Any) -> api.UploadFileResponse:  # noqa: N802
        pieces = [piece async for piece in request_iterator]
        head = pieces[0].head
        self._take(head)
        self.pieces = len(pieces)
        data = b"".join(piece.chunk for piece in pieces[1:])
        user = current_caller().user
        assert user is not None
        file_id = self.keep(user.id, head.name, head.media_type, data)
        return api.UploadFileResponse(file=self.kept[file_id][0])

    async def GetFile(self, request: Any, context: Any) -> api.GetFileResponse:  # noqa: N802
        self._take(request)
        return api.GetFileResponse(file=self._find(request.file_id)[0])

    async def DownloadFile(  # noqa: N802
        self, request: Any, context: Any
    ) -> AsyncIterator[api.DownloadFileResponse]:
        self._take(request)
        file, data = self._find(request.file_id)
        yield api.DownloadFileResponse(file=file)
        wanted = data[request.offset_bytes :][: request.length_bytes or None]
        for place in range(0, len(wanted), CHUNK_BYTES):
            piece = wanted[place : place + CHUNK_BYTES]
            is_last = place + len(piece) == len(wanted)
            if is_last and self.is_cut_off:
                return
            yield api.DownloadFileResponse(chunk=api.FileChunk(data=piece, last=is_last))

    def _find(self, file_id: str) -> tuple[file_pb2.File, bytes]:
        user = current_caller().user
        found = self.kept.get(file_id)
        if found is None or user is None or found[0].owner_id != user.id:
            raise Refusal(FILE_NOT_FOUND)
        return found
