"""Every call of the file service with a path, for tests that try paths on all of them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

import grpc
from google.protobuf.message import Message

from parley.api.workspace.v1 import file_pb2
from parley.api.workspace.v1 import file_service_pb2 as api
from parley.rpc import problem_of
from support.toolrunner.node import Client

TIMEOUT_S = 60


@dataclass(frozen=True)
class Tried:
    """What became of a call: all that it said, and why it was refused if it was."""

    call: str
    path: str
    said: bytes
    status: grpc.StatusCode = grpc.StatusCode.OK
    reason: str = ""

    @property
    def is_clean(self) -> bool:
        """Whether it was answered or refused, rather than failed."""
        return self.status not in (
            grpc.StatusCode.INTERNAL,
            grpc.StatusCode.UNKNOWN,
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.DEADLINE_EXCEEDED,
        )


class FileCalls:
    """All calls; what they write says `evil`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def all(self) -> dict[str, Callable[[str], Awaitable[bytes]]]:
        return {
            "ReadFile": self._read,
            "ReadBytes": self._bytes,
            "WriteFile": self._write,
            "UploadFile": self._upload,
            "EditFiles": self._edit,
            "ApplyPatch add": lambda path: self._patch(f"*** Add File: {path}", "+evil"),
            "ApplyPatch delete": lambda path: self._patch(f"*** Delete File: {path}"),
            "ApplyPatch move": self._patch_move,
            "UndoEdit": self._undo,
            "ListDirectory": self._list,
            "SearchFiles": self._search,
            "FindFiles": self._find,
            "StatPath": self._stat,
            "StatPath itself": lambda path: self._stat(path, no_follow=True),
            "MakeDirectory": self._make,
            "MovePath from": lambda path: self._move(path, f"moved-{self._client.new_id()}"),
            "MovePath to": self._move_to,
            "DeletePath": self._delete,
        }

    async def tried(self, call: str, path: str) -> Tried:
        try:
            return Tried(call, path, await self.all()[call](path))
        except grpc.aio.AioRpcError as error:
            problem = problem_of(error)
            said = f"{problem.message} {problem.metadata}".encode()
            return Tried(call, path, said, problem.status, problem.reason)
        except (ValueError, UnicodeEncodeError) as error:
            # It cannot even be said.
            return Tried(call, path, str(error).encode()[:0], grpc.StatusCode.INVALID_ARGUMENT)

    async def _read(self, path: str) -> bytes:
        request = api.ReadFileRequest(context=self._client.context, path=path)
        return _said(await self._client.files.ReadFile(request, timeout=TIMEOUT_S))

    async def _bytes(self, path: str) -> bytes:
        request = api.ReadBytesRequest(
            context=self._client.context, path=path, length_bytes=100_000
        )
        stream = self._client.files.ReadBytes(request, timeout=TIMEOUT_S)
        return b"".join([_said(piece) async for piece in stream])

    async def _write(self, path: str) -> bytes:
        request = api.WriteFileRequest(
            context=self._client.context,
            request_id=self._client.new_id(),
            path=path,
            content=b"evil\n",
        )
        return _said(await self._client.files.WriteFile(request, timeout=TIMEOUT_S))

    async def _upload(self, path: str) -> bytes:
        head = api.UploadFileHead(
            context=self._client.context,
            request_id=self._client.new_id(),
            path=path,
            size_bytes=5,
        )

        async def pieces() -> AsyncIterator[api.UploadFileRequest]:
            yield api.UploadFileRequest(head=head)
            yield api.UploadFileRequest(chunk=b"evil\n")

        return _said(await self._client.files.UploadFile(pieces(), timeout=TIMEOUT_S))

    async def _edit(self, path: str) -> bytes:
        edits = [
            file_pb2.TextEdit(old_text="secret", new_text="evil", replace_all=True),
        ]
        request = api.EditFilesRequest(
            context=self._client.context,
            request_id=self._client.new_id(),
            files=[file_pb2.FileEdit(path=path, edits=edits)],
        )
        return _said(await self._client.files.EditFiles(request, timeout=TIMEOUT_S))

    async def _patch(self, *lines: str) -> bytes:
        request = api.ApplyPatchRequest(
            context=self._client.context,
            request_id=self._client.new_id(),
            patch="\n".join(("*** Begin Patch", *lines, "*** End Patch")),
        )
        return _said(await self._client.files.ApplyPatch(request, timeout=TIMEOUT_S))

    async def _patch_move(self, path: str) -> bytes:
        await self._write("mine")
        return await self._patch(
            "*** Update File: mine", f"*** Move to: {path}", "@@", "-evil", "+worse"
        )

    async def _undo(self, path: str) -> bytes:
        request = api.UndoEditRequest(
            context=self._client.context, request_id=self._client.new_id(), path=path
        )
        return _said(await self._client.files.UndoEdit(request, timeout=TIMEOUT_S))

    async def _list(self, path: str) -> bytes:
        request = api.ListDirectoryRequest(
            context=self._client.context,
            path=path,
            depth=2,
            include_hidden=True,
            include_ignored=True,
        )
        return _said(await self._client.files.ListDirectory(request, timeout=TIMEOUT_S))

    async def _search(self, path: str) -> bytes:
        request = api.SearchFilesRequest(
            context=self._client.context, pattern=".", paths=[path], include_ignored=True
        )
        stream = self._client.files.SearchFiles(request, timeout=TIMEOUT_S)
        return b"".join([_said(piece) async for piece in stream])

    async def _find(self, path: str) -> bytes:
        request = api.FindFilesRequest(
            context=self._client.context, query="*", path=path, include_ignored=True
        )
        return _said(await self._client.files.FindFiles(request, timeout=TIMEOUT_S))

    async def _stat(self, path: str, *, no_follow: bool = False) -> bytes:
        request = api.StatPathRequest(
            context=self._client.context, path=path, with_etag=True, no_follow=no_follow
        )
        return _said(await self._client.files.StatPath(request, timeout=TIMEOUT_S))

    async def _make(self, path: str) -> bytes:
        request = api.MakeDirectoryRequest(
            context=self._client.context, request_id=self._client.new_id(), path=path
        )
        return _said(await self._client.files.MakeDirectory(request, timeout=TIMEOUT_S))

    async def _move(self, path: str, new_path: str) -> bytes:
        request = api.MovePathRequest(
            context=self._client.context,
            request_id=self._client.new_id(),
            path=path,
            new_path=new_path,
            overwrite=True,
        )
        return _said(await self._client.files.MovePath(request, timeout=TIMEOUT_S))

    async def _move_to(self, path: str) -> bytes:
        await self._write("mine")
        return await self._move("mine", path)

    async def _delete(self, path: str) -> bytes:
        request = api.DeletePathRequest(
            context=self._client.context,
            request_id=self._client.new_id(),
            path=path,
            recursive=True,
        )
        return _said(await self._client.files.DeletePath(request, timeout=TIMEOUT_S))


def _said(message: Message) -> bytes:
    return message.SerializeToString()
