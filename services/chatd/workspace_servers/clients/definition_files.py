"""Reads the definitions of servers from the nodes of workspaces."""

from typing import Final

import grpc

from chatd.users.clients.existence import user_of
from chatd.workspace_servers.domain.definition import (
    FILE_BYTES_MAX,
    NO_SERVERS,
    PATH,
    Definitions,
    definitions_of,
)
from chatd.workspace_servers.domain.ports import ServerPlace
from chatd.workspaces.clients.failures import MOVED, plain_problem
from chatd.workspaces.clients.reachable import require_answer
from chatd.workspaces.domain.errors import NodeLost
from parley.api.workspace.v1 import file_pb2, file_service_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.rpc import Address, Channels, acting_for

ANSWER_S: Final = 5.0
LINES_MAX: Final = 10_000
#: Reasons with which a node says that there is no such file to read.
ABSENT: Final = frozenset({"PATH_NOT_FOUND", "WRONG_PATH_KIND", "OUTSIDE_WORKSPACE", *MOVED})


class NodeDefinitionFiles:
    """Reads the file at the root of workspaces."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    async def read(self, place: ServerPlace) -> Definitions:
        """Return the servers that a workspace defines now.

        Raises:
            NodeLost: Its node does not answer.
        """
        location = place.location
        channel = self._channels.also(Address.parse(location.address))
        request = file_service_pb2.ReadFileRequest(
            context=workspace_pb2.WorkspaceContext(
                workspace_id=location.workspace_id,
                epoch=location.epoch,
                chat_id=place.chat_id,
                # It only reads; a read-only profile would end what the chat runs.
                profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
            ),
            path=PATH,
            offset_line=1,
            limit_lines=LINES_MAX,
            max_bytes=FILE_BYTES_MAX,
            line_bytes=FILE_BYTES_MAX,
            without_suggestions=True,
        )
        try:
            with acting_for(user_of(place.owner)):
                await require_answer(channel, location.workspace_id)
                answer = await FileServiceStub(channel).ReadFile(request, timeout=ANSWER_S)
        except grpc.aio.AioRpcError as error:
            if plain_problem(error).reason in ABSENT:
                return NO_SERVERS
            raise NodeLost(location.workspace_id) from error
        is_whole = not answer.has_more and not answer.clipped_lines
        is_text = answer.kind == file_pb2.CONTENT_KIND_TEXT
        return definitions_of(answer.text if is_text else "", is_whole=is_whole)
