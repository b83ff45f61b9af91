"""One tool call to toolrunner: its key, its location and its timeouts."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

import grpc

from chatd.content.domain.messages import ChatMode
from chatd.content.domain.parts import CallProgress, ReachedHosts
from chatd.content.domain.tools import Execution
from chatd.content.domain.turn_context import CallProcess
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import OwnerClaim, OwnerId
from chatd.workspaces.clients.failures import AMBIGUOUS, plain_problem
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1 import execution_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import Clock

#: Between the end of a wait and the deadline of its response.
HEADROOM_S: Final = 30.0
ANSWER_S: Final = 30.0
#: How long a node may be unavailable, for example during a restart, before a call fails.
RETURN_S: Final = 60.0
AGAIN_S: Final = 0.25
AGAIN_S_MAX: Final = 4.0
#: The ancestors of a chat that are told, the first chat of its tree among them.
ANCESTORS_MAX: Final = 16
#: The hosts that a result keeps.
HOSTS_MAX: Final = 16
STOPPING: Final = "it is stopping"

#: By the mode that is stored with a dispatched call, so that a new owner of the chat keeps it.
PROFILES: Final = {
    ChatMode.ORDINARY: sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
    ChatMode.PLAN: sandbox_pb2.SANDBOX_PROFILE_READ_ONLY,
    ChatMode.EXPLORE: sandbox_pb2.SANDBOX_PROFILE_READ_ONLY,
}

R = TypeVar("R")


class AttachmentStore(Protocol):
    """Stores files that the model attaches."""

    async def keep(
        self, claim: OwnerClaim, owner_id: OwnerId, file_id: str, file: FileData
    ) -> None:
        """Store a file for a chat; an existing one is not changed.

        Raises:
            FenceLost: Another process owns the chat, and nothing was stored.
            TooManyFiles: the chat holds the maximum number of files.
        """
        ...


class ReachingResponses:
    """Collects from the responses to a call which hosts its workspace reached."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._git_hosts: set[str] = set()

    def add(self, response: object) -> None:
        """Add those of a response, if it is one that has them."""
        reached = getattr(response, "reached", None)
        if isinstance(reached, workspace_pb2.ReachedHosts):
            self._hosts.update(reached.hosts)
            self._git_hosts.update(reached.git_hosts)

    def total(self) -> ReachedHosts | None:
        """Return the hosts of all responses; None for none."""
        if not (self._hosts or self._git_hosts):
            return None
        return ReachedHosts(
            tuple(sorted(self._hosts)[:HOSTS_MAX]), tuple(sorted(self._git_hosts)[:HOSTS_MAX])
        )


@dataclass(frozen=True, slots=True)
class Call:
    """A call and the dependencies of its execution."""

    execution: Execution
    channel: grpc.aio.Channel
    clock: Clock
    attachment_store: AttachmentStore
    location: WorkspaceLocation
    reaching: ReachingResponses = field(default_factory=ReachingResponses)

    @property
    def processes(self) -> ProcessServiceStub:
        """The process service of the workspace's node."""
        return ProcessServiceStub(self.channel)

    @property
    def files(self) -> FileServiceStub:
        """The file service of the workspace's node."""
        return FileServiceStub(self.channel)

    @property
    def context(self) -> workspace_pb2.WorkspaceContext:
        """The workspace context of the request."""
        return workspace_pb2.WorkspaceContext(
            workspace_id=self.location.workspace_id,
            epoch=self.location.epoch,
            chat_id=self.execution.chat_id,
            ancestor_chat_ids=self.execution.context.ancestor_ids[-ANCESTORS_MAX:],
            # No tool argument changes this: a model cannot change its sandbox.
            profile=PROFILES[self.execution.dispatch.mode],
            network=sandbox_pb2.NETWORK_ACCESS_UNSPECIFIED,
            turn_id=self.execution.context.turn_id,
        )

    def noted(self, response: R) -> R:
        """Return a response after noting which hosts its workspace reached."""
        self.reaching.add(response)
        return response

    @property
    def request_id(self) -> str:
        """The request id of a change in the journal."""
        return self.execution.dispatch.execution_id

    @property
    def key(self) -> execution_pb2.ExecutionKey:
        """The key with which a change is made at most once."""
        return key_of(self.execution)

    def report(self, update: str | CallProcess | CallProgress) -> None:
        """Show text, the process or the progress of the call while it runs."""
        self.execution.context.progress.report(self.execution.dispatch.call.tool_call_id, update)

    @property
    def budget_bytes(self) -> int:
        """The size limit of the result."""
        return self.execution.budget_bytes


def key_of(execution: Execution) -> execution_pb2.ExecutionKey:
    """Return the key of a dispatched call."""
    return execution_pb2.ExecutionKey(
        execution_id=execution.dispatch.execution_id,
        chat_id=execution.chat_id,
        owner_epoch=execution.owner_epoch,
        journal_generation=execution.dispatch.journal_generation,
    )


class NodeAway(Exception):
    """A node did not become available again in time.

    Attributes:
        cause: The last error, in a few words.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(f"the node of the workspace did not come back: {cause}")
        self.cause = cause


class NodeStopping(Exception):
    """A node responds that it is about to stop."""


async def retry_until_back(clock: Clock, ask: Callable[[bool], Awaitable[R]]) -> R:
    """Return a node's response; retry while it is unavailable, for example during a restart.

    Args:
        clock: The clock.
        ask: Sends a request that may be repeated; is called with whether this is a retry.

    Raises:
        NodeAway: The node did not become available again in time.
        grpc.aio.AioRpcError: It refused.
    """
    give_up_at, pause_s, is_again = clock.monotonic() + RETURN_S, 0.0, False
    while True:
        try:
            return await ask(is_again)
        except NodeStopping:
            cause = STOPPING
        except grpc.aio.AioRpcError as error:
            if not is_lost(error):
                raise
            cause = failure_reason(error)
        if clock.monotonic() >= give_up_at:
            raise NodeAway(cause)
        await clock.sleep(pause_s)
        pause_s = min(max(AGAIN_S, 2 * pause_s), AGAIN_S_MAX)
        is_again = True


async def look(
    call: Call, method: Callable[..., Awaitable[R]], request: Any, timeout_s: float = ANSWER_S
) -> R:
    """Send a read-only request; retry it if the response was lost.

    Raises:
        NodeAway: The node did not become available again in time.
        grpc.aio.AioRpcError: It refused.
    """

    async def ask(is_again: bool) -> R:
        return call.noted(await method(request, timeout=timeout_s, wait_for_ready=is_again))

    return await retry_until_back(call.clock, ask)


def is_lost(error: grpc.aio.AioRpcError) -> bool:
    """Return whether it is unknown if a request arrived."""
    return error.code() in AMBIGUOUS


def failure_reason(error: grpc.aio.AioRpcError) -> str:
    """Return the cause of a failed request in a few words."""
    problem = plain_problem(error)
    return problem.message or problem.reason


def without_empty(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that are not empty, false, zero or None."""
    return {name: value for name, value in fields.items() if value not in ("", False, None, 0, [])}
