"""Processes of chats, as the nodes of their workspaces know them: read, never changed."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from chatd.primitives.domain.ids import ChatId, Owner
from chatd.tools.workspace.call import retry_until_back
from chatd.users.clients.existence import user_of
from chatd.workspaces.domain.ports import WorkspaceLocation, WorkspaceLocator
from parley.api.workspace.v1 import process_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import Clock
from parley.rpc import Address, Channels, acting_for

LOOK_S: Final = 30.0
OUTPUT_BYTES: Final = 1024

R = TypeVar("R")


class NodeProcesses:
    """Reads processes from the nodes of workspaces.

    Every method raises `ChatError` if the chat has no workspace that can be read now, `NodeAway` if
    its node does not answer, and `grpc.aio.AioRpcError` if the node refuses.

    Args:
        channels: The channels to nodes.
        locator: Finds the workspaces of chats.
        clock: Time between two attempts while a node is away.
    """

    def __init__(self, channels: Channels, locator: WorkspaceLocator, clock: Clock) -> None:
        self._channels = channels
        self._locator = locator
        self._clock = clock

    async def snapshot(
        self, chat_id: ChatId, owner: Owner, process_id: str, pattern: str, since: int
    ) -> api.WaitOutputResponse:
        """Return a process as it is now, with a line after a cursor that matches."""
        until = process_pb2.WAIT_UNTIL_MATCH if pattern else process_pb2.WAIT_UNTIL_SNAPSHOT
        request = api.WaitOutputRequest(
            process_id=process_id,
            since_cursor=since,
            condition=process_pb2.WaitCondition(until=until, pattern=pattern, max_wait_ms=0),
            budget=process_pb2.OutputBudget(max_bytes=OUTPUT_BYTES, head_bytes=0),
        )
        return await self._read(chat_id, owner, request)

    async def output(
        self, chat_id: ChatId, owner: Owner, process_id: str, *, since: int, output_bytes: int
    ) -> api.WaitOutputResponse:
        """Return a process as it is now, with its output after a cursor."""
        request = api.WaitOutputRequest(
            process_id=process_id,
            since_cursor=since,
            condition=process_pb2.WaitCondition(until=process_pb2.WAIT_UNTIL_SNAPSHOT),
            budget=process_pb2.OutputBudget(max_bytes=output_bytes),
        )
        return await self._read(chat_id, owner, request)

    async def listed(
        self, chat_id: ChatId, owner: Owner, processes_max: int
    ) -> api.ListProcessesResponse:
        """Return the processes of a chat, running ones first; none without a placed workspace."""
        location = await self._locator.locate(chat_id)
        if not location.epoch:
            return api.ListProcessesResponse()
        request = api.ListProcessesRequest(
            context=_context(location, chat_id), page_size=processes_max
        )
        return await self._asked(owner, self._stub(location).ListProcesses, request)

    async def _read(
        self, chat_id: ChatId, owner: Owner, request: api.WaitOutputRequest
    ) -> api.WaitOutputResponse:
        location = await self._locator.locate(chat_id)
        request.context.CopyFrom(_context(location, chat_id))
        return await self._asked(owner, self._stub(location).WaitOutput, request)

    def _stub(self, location: WorkspaceLocation) -> ProcessServiceStub:
        return ProcessServiceStub(self._channels.also(Address.parse(location.address)))

    async def _asked(self, owner: Owner, method: Callable[..., Awaitable[R]], request: object) -> R:
        async def ask(is_again: bool) -> R:
            with acting_for(user_of(owner)):
                return await method(request, timeout=LOOK_S, wait_for_ready=is_again)

        return await retry_until_back(self._clock, ask)


def _context(location: WorkspaceLocation, chat_id: ChatId) -> workspace_pb2.WorkspaceContext:
    return workspace_pb2.WorkspaceContext(
        workspace_id=location.workspace_id,
        epoch=location.epoch,
        chat_id=chat_id,
        # A read-only profile would wait until the processes of the chat that may write are ended.
        profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
    )
