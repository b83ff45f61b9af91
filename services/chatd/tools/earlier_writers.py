"""The end of processes from before, when a turn begins that may only read.

The node ends them at the first call of a chat that may only read. A turn that calls nothing makes
none, so one that changes nothing is made for it, and one for each agent in the same workspace.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import grpc

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.turn_context import TurnContext
from chatd.primitives.domain.errors import ChatError
from chatd.primitives.domain.ids import ChatId, Owner
from chatd.users.clients.existence import user_of
from chatd.workspaces.clients.failures import MOVED, plain_problem
from chatd.workspaces.domain.ports import WorkspaceLocation, WorkspaceLocator
from parley.api.workspace.v1 import process_service_pb2 as api
from parley.api.workspace.v1 import sandbox_pb2, workspace_pb2
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.rpc import Address, Channels, acting_for

logger = logging.getLogger(__name__)

#: A process that ignores the first signal is killed after three seconds.
END_TIMEOUT_S: Final = 10.0
#: The location that is cached may be that of an earlier placement.
LOOKS_MAX: Final = 2


class NodeWriters:
    """Ends processes at the nodes of workspaces.

    Args:
        channels: The channels to nodes.
        locator: Finds the workspaces of chats.
        below: Returns all chats below a chat.
    """

    def __init__(
        self,
        channels: Channels,
        locator: WorkspaceLocator,
        below: Callable[[ChatId], Awaitable[Sequence[ChatId]]],
    ) -> None:
        self._channels = channels
        self._locator = locator
        self._below = below

    async def end(self, context: TurnContext) -> bool:
        """End those of a chat and of its agents, if its turn may only read.

        Ordinary turns, and requests outside of turns, cost nothing. Returns False if some of them
        may still write.
        """
        if context.mode is ChatMode.ORDINARY or not context.turn_id:
            return True
        below = await self._below(context.chat_id) if context.has_agents else ()
        for _ in range(LOOKS_MAX):
            try:
                location = await self._locator.last_known(context.chat_id)
            except ChatError as nowhere:
                logger.warning("processes of a chat that plans were not ended: %s", nowhere)
                return False
            async with asyncio.TaskGroup() as tasks:
                ends = [
                    tasks.create_task(self._end_of(chat_id, context.owner, location))
                    for chat_id in (context.chat_id, *below)
                ]
            problems = {task.result() for task in ends} - {""}
            if not problems & set(MOVED):
                return not problems
            self._locator.forget(context.chat_id)
        return True  # The workspace is stopped; when it starts it runs nothing of before.

    async def _end_of(self, chat_id: ChatId, owner: Owner, location: WorkspaceLocation) -> str:
        """End the processes of one chat; return the reason if that fails, empty if it does not."""
        stub = ProcessServiceStub(self._channels.also(Address.parse(location.address)))
        request = api.ListProcessesRequest(
            context=workspace_pb2.WorkspaceContext(
                workspace_id=location.workspace_id,
                epoch=location.epoch,
                chat_id=chat_id,
                profile=sandbox_pb2.SANDBOX_PROFILE_READ_ONLY,
            ),
            page_size=1,
        )
        try:
            with acting_for(user_of(owner)):
                await stub.ListProcesses(request, timeout=END_TIMEOUT_S)
        except grpc.aio.AioRpcError as error:
            reason = plain_problem(error).reason
            if reason not in MOVED:
                logger.warning(
                    "processes of a chat that plans were not ended: %s",
                    reason,
                    extra={"chat_id": chat_id},
                )
            return reason
        return ""
