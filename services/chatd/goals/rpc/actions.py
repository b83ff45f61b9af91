"""Sends messages and runs checks for goals, through the methods that their owners would call."""

from contextlib import suppress
from typing import Any, Final, Protocol

from chatd.chats.domain.owner_calls import CallRefused
from chatd.chats.rpc.owner_calls import OwnerCalls
from chatd.content.domain.messages import MessageOrigin
from chatd.goals.domain.goal import OUTPUT_CHARACTERS_MAX, CheckResult, Goal
from chatd.primitives.domain.errors import RequestIdReused
from parley.api.chat.v1 import chat_service_pb2, message_pb2
from parley.api.workspace.v1 import process_pb2, workspace_access_service_pb2

CHATS: Final = "parley.api.chat.v1.ChatService"
WORKSPACES: Final = "parley.api.workspace.v1.WorkspaceAccessService"
#: How long a check may take, and for how long it is waited at once.
CHECK_MS_MAX: Final = 600_000
WAIT_MS: Final = 10_000


class Messages(Protocol):
    """Sending of ChatService, as goals call it."""

    async def send(self, request: Any, origin: MessageOrigin) -> Any:
        """Send a message to a chat."""
        ...


class Processes(Protocol):
    """The methods of WorkspaceAccessService that goals call."""

    async def StartWorkspaceProcess(self, request: Any, context: Any) -> Any:
        """Start a process once for each request id."""
        ...

    async def WaitWorkspaceOutput(self, request: Any, context: Any) -> Any:
        """Wait for a process."""
        ...


class OwnerActions:
    """Acts for the owners of goals.

    Args:
        messages: ChatService of this process.
        processes: WorkspaceAccessService of this process.
        calls: Calls them as the owners.
    """

    def __init__(self, messages: Messages, processes: Processes, calls: OwnerCalls) -> None:
        self._messages = messages
        self._processes = processes
        self._calls = calls

    async def send(self, goal: Goal, text: str, request_id: str) -> None:
        """Send a message; a repeated request id sends nothing, whatever its text.

        Raises:
            CallRefused: It was refused.
            CallPostponed: Something that it needs is away.
        """
        request = chat_service_pb2.SendMessageRequest(
            request_id=request_id,
            chat_id=goal.chat_id,
            content=[message_pb2.Part(text=message_pb2.TextPart(text=text))],
            brief=True,
        )

        async def ask() -> None:
            # It may have been sent before, with the output of another check.
            with suppress(RequestIdReused):
                await self._messages.send(request, MessageOrigin.GOAL)

        await self._calls.call(goal.owner, f"{CHATS}/SendMessage", ask)

    async def check(self, goal: Goal, request_id: str) -> CheckResult | None:
        """Run the check of a goal; None while it still runs.

        Raises:
            CallRefused: It cannot be run.
            CallPostponed: Something that it needs is away.
        """
        spec = process_pb2.ProcessSpec(command=goal.check_command, timeout_ms=CHECK_MS_MAX)
        starting = workspace_access_service_pb2.StartWorkspaceProcessRequest(
            request_id=request_id, workspace_id=goal.chat_id, spec=spec
        )
        started = await self._calls.call(
            goal.owner,
            f"{WORKSPACES}/StartWorkspaceProcess",
            lambda: self._processes.StartWorkspaceProcess(starting, None),
        )
        waiting = workspace_access_service_pb2.WaitWorkspaceOutputRequest(
            workspace_id=goal.chat_id,
            process_id=started.process.process_id,
            condition=process_pb2.WaitCondition(
                until=process_pb2.WAIT_UNTIL_EXIT, max_wait_ms=WAIT_MS
            ),
            budget=process_pb2.OutputBudget(max_bytes=OUTPUT_CHARACTERS_MAX, head_bytes=0),
        )
        waited = await self._calls.call(
            goal.owner,
            f"{WORKSPACES}/WaitWorkspaceOutput",
            lambda: self._processes.WaitWorkspaceOutput(waiting, None),
        )
        return result_of(waited.process, waited.output.text)


def result_of(process: process_pb2.Process, output: str) -> CheckResult | None:
    """Return how a check ended; None while it runs. NUL, which is not stored, is replaced.

    Raises:
        CallRefused: It never ran, or nothing more is known of it.
    """
    match process.state:
        case process_pb2.PROCESS_STATE_EXITED:
            return CheckResult(process.exit.shell_exit_code, _storable(output))
        case process_pb2.PROCESS_STATE_START_FAILED:
            reason = _storable(process.start_error)
            raise CallRefused(f"The check could not be started: {reason}")
        case process_pb2.PROCESS_STATE_LOST:
            raise CallRefused("The check was cut off by a restart; resume the goal.")
        case _:
            return None


def _storable(text: str) -> str:
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")
