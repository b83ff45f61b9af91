"""Reads the instruction files of a chat's workspace from its node."""

from typing import Final

import grpc

from chatd.content.domain.instructions import FILE_BYTES_MAX, INSTRUCTION_FILES, bounded
from chatd.content.domain.parts import ContextFile
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.users.clients.existence import user_of
from chatd.workspaces.clients.failures import plain_problem
from chatd.workspaces.domain.errors import NodeLost
from chatd.workspaces.domain.ports import WorkspaceLocation, WorkspaceLocator
from parley.api.workspace.v1 import file_pb2, file_service_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.rpc import Address, Channels, acting_for

ANSWER_S: Final = 5.0
LINES_MAX: Final = 10_000
#: Reasons with which a node says that there is no such file to read.
ABSENT: Final = frozenset({"PATH_NOT_FOUND", "WRONG_PATH_KIND", "OUTSIDE_WORKSPACE"})


class NodeInstructionFiles:
    """Reads the files at the root of workspaces."""

    def __init__(self, channels: Channels, locator: WorkspaceLocator) -> None:
        self._channels = channels
        self._locator = locator

    async def read(self, chat_id: ChatId, owner: Owner) -> tuple[ContextFile, ...]:
        """Return the instruction files of a chat's workspace, sanitized and bounded.

        Raises:
            ChatError: There is no workspace that can be read now.
        """
        location = await self._locator.last_known(chat_id)
        if not location.is_made:
            return ()
        try:
            with acting_for(user_of(owner)):
                found = [await self._file(location, chat_id, path) for path in INSTRUCTION_FILES]
        except grpc.aio.AioRpcError as error:
            # Only a failed connection or a moved workspace makes the next call look again.
            self._locator.forget(chat_id)
            raise NodeLost(location.workspace_id) from error
        return bounded(file for file in found if file is not None)

    async def _file(
        self, location: WorkspaceLocation, chat_id: ChatId, path: str
    ) -> ContextFile | None:
        stub = FileServiceStub(self._channels.also(Address.parse(location.address)))
        request = file_service_pb2.ReadFileRequest(
            context=workspace_pb2.WorkspaceContext(
                workspace_id=location.workspace_id,
                epoch=location.epoch,
                chat_id=chat_id,
                # It only reads; a read-only profile would end what the chat runs.
                profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
            ),
            path=path,
            offset_line=1,
            limit_lines=LINES_MAX,
            max_bytes=FILE_BYTES_MAX,
        )
        try:
            answer = await stub.ReadFile(request, timeout=ANSWER_S)
        except grpc.aio.AioRpcError as error:
            if plain_problem(error).reason in ABSENT:
                return None
            raise
        if answer.kind != file_pb2.CONTENT_KIND_TEXT:
            return None
        return ContextFile(path, answer.text, answer.has_more or answer.clipped_lines > 0)
