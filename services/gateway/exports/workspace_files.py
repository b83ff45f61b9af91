"""Collects the files of a user's workspaces for an export, each in parts of bounded size.

Links are listed and never followed. What git ignores comes last, so that a bound leaves out what a
build can make again. A file that was cut off is read again from its start.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import grpc
import msgspec

from gateway.exports.file import File
from gateway.http.problems.errors import UpstreamProblem
from gateway.streams.chatd_client import Stubs
from parley.api.workspace.v1 import file_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as api
from parley.identity import User
from parley.rpc import Problem, problem_of

PART_BYTES: Final = 1024 * 1024
FILE_BYTES_MAX: Final = 256 * 1024 * 1024
WORKSPACE_FILES_MAX: Final = 50_000
#: Of all names of a workspace together, which are in memory until its index is written.
WORKSPACE_NAMES_BYTES_MAX: Final = 16 * 1024 * 1024
EXPORT_BYTES_MAX: Final = 2 * 1024 * 1024 * 1024
LEVELS: Final = 8
#: Names are part of a key of the database, whose size is bounded.
NAME_BYTES_MAX: Final = 2_000
#: Of a name that is too long, so much is listed.
SHOWN_CHARACTERS: Final = 200
PAGE_SIZE: Final = 200
CALL_S: Final = 60.0
STREAM_S: Final = 3600.0
UNSAFE: Final = '\\:"%'

#: Codes of what is left out on purpose.
FILE_TOO_LARGE: Final = "FILE_TOO_LARGE"
TOO_MANY_FILES: Final = "TOO_MANY_FILES"
EXPORT_FULL: Final = "EXPORT_FULL"
NAME_TOO_LONG: Final = "NAME_TOO_LONG"
NAME_NOT_UTF8: Final = "NAME_NOT_UTF8"
#: What nodes write for bytes of a name that are no UTF-8; the file cannot be asked for by it.
REPLACED: Final = "\ufffd"
#: The node of one workspace does not answer, while chatd does: the export goes on without it.
NODE_AWAY: Final = frozenset({"UPSTREAM_UNAVAILABLE", "NODE_LOST", "NO_NODE"})


T = TypeVar("T")


class Chatd(Protocol):
    """Asks the process of a chat; implemented by `gateway.streams.chatd_client.ChatdClient`."""

    async def ask(
        self, user: User, chat_id: str, question: Callable[[Stubs], Awaitable[T]]
    ) -> tuple[T, Stubs]:
        """Return the response, and the stubs of the process that gave it.

        Raises:
            UpstreamProblem: The response is an error, or no process responds.
        """
        ...


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much of workspaces an export may have."""

    file_bytes_max: int = FILE_BYTES_MAX
    workspace_files_max: int = WORKSPACE_FILES_MAX
    workspace_names_bytes_max: int = WORKSPACE_NAMES_BYTES_MAX
    export_bytes_max: int = EXPORT_BYTES_MAX


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something that the export has not, with the code of the reason."""

    name: str
    code: str


@dataclass(slots=True)
class _Walk:
    """What was seen of one workspace."""

    prefix: str
    index: list[object] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    refused: set[str] = field(default_factory=set)
    names_bytes: int = 0


class WorkspaceFiles:
    """The files of all workspaces of a user.

    Args:
        user: The user, as whom chatd is asked.
        chatd: The client of chatd.
        known: Files that the export has already.
        bounds: How much is collected.
    """

    def __init__(
        self, user: User, chatd: Chatd, known: Set[str], bounds: Bounds | None = None
    ) -> None:
        self._user = user
        self._chatd = chatd
        self._known = known
        self._bounds = bounds or Bounds()
        self._bytes = 0

    async def of(self, workspace_id: str) -> AsyncIterator[File | LeftOut]:
        """Yield the files of a workspace, and last its index, as a mark that all is there.

        Raises:
            UpstreamProblem: chatd does not answer, or refuses; the files up to here are good.
        """
        walk = _Walk(f"workspaces/{workspace_id}")
        index = f"{walk.prefix}/index.json"
        if index in self._known:
            return
        async for info in self._all_entries(workspace_id, walk):
            if isinstance(info, LeftOut):
                yield info
                continue
            if info.path in walk.seen:
                continue
            name = f"{walk.prefix}/files/{archived_path(info.path)}"
            walk.names_bytes += sum(
                len(each.encode()) for each in (info.path, info.link_target, name)
            )
            if (
                len(walk.seen) == self._bounds.workspace_files_max
                or walk.names_bytes > self._bounds.workspace_names_bytes_max
            ):
                yield LeftOut(walk.prefix, TOO_MANY_FILES)
                break
            walk.seen.add(info.path)
            async for file in self._taken(workspace_id, walk, name, info):
                yield file
        yield File(index, msgspec.json.encode(walk.index) + b"\n")

    async def _taken(
        self, workspace_id: str, walk: _Walk, name: str, info: file_pb2.PathInfo
    ) -> AsyncIterator[File | LeftOut]:
        is_file = info.type == file_pb2.PATH_TYPE_FILE and not info.link_target
        reason = self._reason_to_leave_out(name, info) if is_file else None
        walk.index.append(_described(info, name if is_file and reason is None else None))
        if reason is not None:
            yield _left_out(name, reason)
        elif is_file and name in self._known:
            self._bytes += info.size_bytes
        elif is_file:
            async for part in self._parts(workspace_id, name, info):
                yield part

    def _reason_to_leave_out(self, name: str, info: file_pb2.PathInfo) -> str | None:
        if len(name.encode()) > NAME_BYTES_MAX:
            return NAME_TOO_LONG
        if REPLACED in info.path:
            return NAME_NOT_UTF8
        if info.size_bytes > self._bounds.file_bytes_max:
            return FILE_TOO_LARGE
        # An empty file may have grown since it was listed, and a length of 0 asks for all of it.
        is_full = not self._left or info.size_bytes > self._left
        return EXPORT_FULL if is_full else None

    @property
    def _left(self) -> int:
        """How many bytes the export may still have."""
        return max(0, self._bounds.export_bytes_max - self._bytes)

    async def _all_entries(
        self, workspace_id: str, walk: _Walk
    ) -> AsyncIterator[file_pb2.PathInfo | LeftOut]:
        """Yield what is neither hidden nor ignored, then everything."""
        for include_ignored in (False, True):
            async for info in self._entries(workspace_id, walk, include_ignored):
                yield info

    async def _entries(
        self, workspace_id: str, walk: _Walk, include_ignored: bool
    ) -> AsyncIterator[file_pb2.PathInfo | LeftOut]:
        """Yield all that is below the root; directories that are too deep are listed in turn.

        One of them that is refused is noted, such as a deleted one.
        """
        waiting = [""]
        while waiting:
            asked = api.ListWorkspaceDirectoryRequest(
                workspace_id=workspace_id,
                path=waiting.pop(),
                depth=LEVELS,
                page_size=PAGE_SIZE,
                include_ignored=include_ignored,
            )
            path = asked.path
            try:
                async for entry in self._listed(asked):
                    yield entry.info
                    is_directory = entry.info.type == file_pb2.PATH_TYPE_DIRECTORY
                    if is_directory and entry.depth == LEVELS and not entry.info.link_target:
                        waiting.append(entry.info.path)
            except UpstreamProblem as error:
                if not path or error.problem.status is grpc.StatusCode.UNAVAILABLE:
                    raise
                if path not in walk.refused:
                    walk.refused.add(path)
                    reason = NAME_NOT_UTF8 if REPLACED in path else error.problem.reason
                    yield _left_out(f"{walk.prefix}/files/{archived_path(path)}", reason)

    async def _listed(
        self, asked: api.ListWorkspaceDirectoryRequest
    ) -> AsyncIterator[file_pb2.DirectoryEntry]:
        while True:
            page, _ = await self._chatd.ask(
                self._user,
                asked.workspace_id,
                lambda stubs: stubs.workspaces.ListWorkspaceDirectory(asked, timeout=CALL_S),
            )
            for entry in page.entries:
                yield entry
            if not page.next_page_token:
                return
            asked.page_token = page.next_page_token

    async def _parts(
        self, workspace_id: str, name: str, info: file_pb2.PathInfo
    ) -> AsyncIterator[File | LeftOut]:
        """Yield a file as it is read; one that is refused is noted, such as a deleted one."""
        asked = api.DownloadWorkspaceFileRequest(
            workspace_id=workspace_id,
            path=info.path,
            # It may have grown since it was listed.
            length_bytes=min(self._bounds.file_bytes_max, self._left),
        )
        try:
            call, _ = await self._chatd.ask(
                self._user,
                workspace_id,
                lambda stubs: _begun(
                    stubs.workspaces.DownloadWorkspaceFile(asked, timeout=STREAM_S)
                ),
            )
            part, held, before = 0, bytearray(), self._bytes
            async for chunk in _chunks(call):
                self._bytes += len(chunk)
                if len(held) >= PART_BYTES:
                    yield File(name, bytes(held), part, is_last=False)
                    part += 1
                    held.clear()
                held += chunk
        except UpstreamProblem as error:
            if error.problem.status is grpc.StatusCode.UNAVAILABLE:
                raise
            yield LeftOut(name, error.problem.reason)
            return
        yield File(name, bytes(held), part)
        if info.size_bytes < self._bytes - before == asked.length_bytes:
            # It grew, and so much of it is in the export.
            yield LeftOut(name, EXPORT_FULL if not self._left else FILE_TOO_LARGE)


def _left_out(name: str, reason: str) -> LeftOut:
    is_long = len(name.encode()) > NAME_BYTES_MAX
    return LeftOut(name[:SHOWN_CHARACTERS] if is_long else name, reason)


async def _begun(call: Any) -> Any:
    first = await call.read()
    if first is grpc.aio.EOF or first.WhichOneof("piece") != "head":
        call.cancel()
        raise _cut_off()
    return call


async def _chunks(call: Any) -> AsyncIterator[bytes]:
    try:
        while (piece := await call.read()) is not grpc.aio.EOF:
            if piece.WhichOneof("piece") == "closed":
                return
            yield piece.chunk
    except grpc.aio.AioRpcError as error:
        raise UpstreamProblem(problem_of(error)) from error
    finally:
        call.cancel()
    raise _cut_off()


def _cut_off() -> UpstreamProblem:
    return UpstreamProblem(Problem.of("UPSTREAM_UNAVAILABLE", "a file of a workspace ended early"))


def archived_path(path: str) -> str:
    """Return a path as the archive names it: nothing in it leaves its directory anywhere.

    Characters that mean something to an unpacking program are written as in URLs, and so is `%`, so
    that two paths never get one name.
    """
    return "/".join("".join(_archived(each)) for each in path.split("/"))


def _archived(component: str) -> Iterator[str]:
    is_dots = not component.strip(".")
    for character in component:
        is_plain = character.isprintable() and character not in UNSAFE and not is_dots
        yield character if is_plain else "".join(f"%{each:02X}" for each in character.encode())


def _described(info: file_pb2.PathInfo, name: str | None) -> object:
    return {
        "path": info.path,
        "type": file_pb2.PathType.Name(info.type).removeprefix("PATH_TYPE_").lower(),
        "size_bytes": info.size_bytes,
        "mode": f"{info.mode:04o}",
        "link_target": info.link_target or None,
        "name": name,
    }
