"""Reads text files of workspaces from their nodes, for prompts."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import grpc

from chatd.primitives.domain.ids import ChatId, Owner
from chatd.users.clients.existence import user_of
from chatd.workspaces.clients.failures import plain_problem
from chatd.workspaces.clients.reachable import require_answer
from chatd.workspaces.domain.errors import NodeLost
from chatd.workspaces.domain.ports import WorkspaceLocation, WorkspaceLocator
from parley.api.workspace.v1 import file_pb2, file_service_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.rpc import Address, Channels, acting_for

ANSWER_S: Final = 5.0
LINES_MAX: Final = 10_000
FOUND_MAX: Final = 200
#: Reasons with which a node says that there is no such file or directory that it could read.
ABSENT: Final = frozenset(
    {"PATH_NOT_FOUND", "PATH_FORBIDDEN", "WRONG_PATH_KIND", "OUTSIDE_WORKSPACE"}
)

T = TypeVar("T")


class NodeFiles:
    """The files of one workspace.

    Args:
        channels: The channels to nodes.
        location: Where the workspace is.
        chat_id: The chat that reads.
    """

    def __init__(self, channels: Channels, location: WorkspaceLocation, chat_id: ChatId) -> None:
        self._channel = channels.also(Address.parse(location.address))
        self._stub = FileServiceStub(self._channel)
        self._context = workspace_pb2.WorkspaceContext(
            workspace_id=location.workspace_id,
            epoch=location.epoch,
            chat_id=chat_id,
            # It only reads; a read-only profile would end what the chat runs.
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
        )

    async def require_answer(self) -> None:
        """Check that the node of the workspace answers.

        Raises:
            NodeLost: It does not.
        """
        await require_answer(self._channel, self._context.workspace_id)

    async def text(
        self, path: str, bytes_max: int, *, in_home: bool = False
    ) -> tuple[str, bool] | None:
        """Return the text of a file and whether a part of it is missing; None if there is none.

        Args:
            path: The file.
            bytes_max: How much of it is wanted.
            in_home: Whether it is in the home of the workspace's processes.
        """
        request = file_service_pb2.ReadFileRequest(
            context=self._context,
            path=path,
            offset_line=1,
            limit_lines=LINES_MAX,
            max_bytes=bytes_max,
            without_suggestions=True,
            in_home=in_home,
        )
        try:
            answer = await self._stub.ReadFile(request, timeout=ANSWER_S)
        except grpc.aio.AioRpcError as error:
            if plain_problem(error).reason in ABSENT:
                return None
            raise
        if answer.kind != file_pb2.CONTENT_KIND_TEXT:
            return None
        return answer.text, answer.has_more or answer.clipped_lines > 0

    async def find(self, directory: str, pattern: str) -> tuple[str, ...]:
        """Return the paths of files below a directory that fit a pattern, sorted."""
        request = file_service_pb2.FindFilesRequest(
            context=self._context,
            query=pattern,
            mode=file_service_pb2.FIND_MODE_GLOB,
            path=directory,
            page_size=FOUND_MAX,
            include_ignored=True,
            without_suggestions=True,
        )
        try:
            answer = await self._stub.FindFiles(request, timeout=ANSWER_S)
        except grpc.aio.AioRpcError as error:
            if plain_problem(error).reason in ABSENT:
                return ()
            raise
        return tuple(sorted(found.info.path for found in answer.files))


async def in_workspace(
    channels: Channels,
    locator: WorkspaceLocator,
    chat_id: ChatId,
    owner: Owner,
    work: Callable[[NodeFiles], Awaitable[T]],
    *,
    absent: T,
) -> T:
    """Return what `work` finds in the workspace of a chat, `absent` if it has none yet.

    Raises:
        ChatError: There is no workspace that can be read now.
    """
    location = await locator.last_known(chat_id)
    if not location.is_made:
        return absent
    files = NodeFiles(channels, location, chat_id)
    try:
        with acting_for(user_of(owner)):
            await files.require_answer()
            return await work(files)
    except NodeLost:
        locator.forget(chat_id)
        raise
    except grpc.aio.AioRpcError as error:
        # Only a failed connection or a moved workspace makes the next call look again.
        locator.forget(chat_id)
        raise NodeLost(location.workspace_id) from error
