"""Looks at processes and wakes chats, through the methods that owners would call."""

import asyncio
from contextlib import suppress
from typing import Any, Final, Protocol

from chatd.chats.domain.owner_calls import CallPostponed
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.content.domain.messages import MessageOrigin
from chatd.monitors.domain.monitor import Look, Monitor, MonitorCause
from chatd.primitives.domain.errors import RequestIdReused
from parley.api.chat.v1 import chat_service_pb2, message_pb2
from parley.api.workspace.v1 import process_pb2
from parley.api.workspace.v1 import workspace_access_service_pb2 as access_api

CHATS: Final = "parley.api.chat.v1.ChatService"
WORKSPACES: Final = "parley.api.workspace.v1.WorkspaceAccessService"
#: How long a look waits at the node.
WAIT_MS: Final = 2_000
#: After which time a look is given up for now: the node does not answer.
LOOK_S: Final = WAIT_MS / 1000 + 3.0


class Messages(Protocol):
    """Sending of ChatService, as monitors call it."""

    async def send(self, request: Any, origin: MessageOrigin) -> Any:
        """Send a message to a chat."""
        ...


class Processes(Protocol):
    """The method of WorkspaceAccessService that monitors call."""

    async def WaitWorkspaceOutput(self, request: Any, context: Any) -> Any:
        """Wait for a process."""
        ...


class OwnerActions:
    """Acts for the owners of monitors.

    Args:
        messages: ChatService of this process.
        processes: WorkspaceAccessService of this process.
        calls: Calls them as the owners.
        look_s: How long a look takes at most.
    """

    def __init__(
        self,
        messages: Messages,
        processes: Processes,
        calls: OwnerCalls,
        look_s: float = LOOK_S,
    ) -> None:
        self._look_s = look_s
        self._messages = messages
        self._processes = processes
        self._calls = calls

    async def look(self, monitor: Monitor) -> Look:
        """Wait for the process of a monitor for a moment.

        Raises:
            CallRefused: It cannot be watched any more.
            CallPostponed: Its node is away.
        """
        until = process_pb2.WAIT_UNTIL_MATCH if monitor.pattern else process_pb2.WAIT_UNTIL_EXIT
        request = access_api.WaitWorkspaceOutputRequest(
            workspace_id=monitor.chat_id,
            process_id=monitor.process_id,
            since_cursor=monitor.cursor,
            condition=process_pb2.WaitCondition(
                until=until, pattern=monitor.pattern, max_wait_ms=WAIT_MS
            ),
            budget=process_pb2.OutputBudget(max_bytes=1, head_bytes=0),
        )
        try:
            async with asyncio.timeout(self._look_s):
                waited = await self._calls.call(
                    monitor.owner,
                    f"{WORKSPACES}/WaitWorkspaceOutput",
                    lambda: self._processes.WaitWorkspaceOutput(request, None),
                )
        except TimeoutError as error:
            raise CallPostponed("The node of the workspace does not answer.") from error
        return look_of(waited, monitor.cursor)

    async def wake(self, monitor: Monitor, text: str, request_id: str) -> None:
        """Send a message; a repeated request id sends nothing.

        Raises:
            CallRefused: It was refused.
            CallPostponed: Something that it needs is away.
        """
        request = chat_service_pb2.SendMessageRequest(
            request_id=request_id,
            chat_id=monitor.chat_id,
            content=[message_pb2.Part(text=message_pb2.TextPart(text=text))],
            brief=True,
        )

        async def ask() -> None:
            with suppress(RequestIdReused):
                await self._messages.send(request, MessageOrigin.MONITOR)

        await self._calls.call(monitor.owner, f"{CHATS}/SendMessage", ask)


def look_of(waited: access_api.WaitWorkspaceOutputResponse, cursor: int) -> Look:
    """Return what a wait saw of a process.

    Raises:
        CallPostponed: The node stops.
    """
    cursor = max(cursor, waited.search_cursor)
    match waited.reason:
        case process_pb2.WAIT_REASON_MATCHED:
            return Look(cursor, MonitorCause.MATCHED, waited.output.matched_line)
        case process_pb2.WAIT_REASON_EXITED:
            return _ended(waited.process, cursor)
        case process_pb2.WAIT_REASON_GOING_AWAY:
            raise CallPostponed("The node of the workspace stops.")
        case _:
            return Look(cursor)


def _ended(process: process_pb2.Process, cursor: int) -> Look:
    match process.state:
        case process_pb2.PROCESS_STATE_LOST:
            return Look(cursor, MonitorCause.LOST, "how it ended is not known.")
        case process_pb2.PROCESS_STATE_START_FAILED:
            return Look(cursor, MonitorCause.EXITED, f"it did not start: {process.start_error}")
        case _:
            detail = f"its exit code is {process.exit.shell_exit_code}."
            return Look(cursor, MonitorCause.EXITED, detail)
