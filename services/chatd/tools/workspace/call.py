"""One call of a tool on its way to toolrunner: whose it is, its key, and how long it may take."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import grpc

from chatd.content.domain.tools import Execution
from chatd.models.domain.language_model import FileData
from chatd.primitives.domain.ids import ChatId, OwnerId
from chatd.workspaces.clients.failures import AMBIGUOUS, plain_problem
from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1 import execution_pb2, sandbox_pb2, workspace_pb2
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.clock import Clock

#: Between the end of a wait and the last moment at which its answer may come.
HEADROOM_S: Final = 30.0
ANSWER_S: Final = 30.0
#: How long a node may be away, as while it starts again, before a call is given up.
RETURN_S: Final = 60.0
AGAIN_S: Final = 0.25
AGAIN_S_MAX: Final = 4.0
STOPPING: Final = "it is stopping"

R = TypeVar("R")


class AttachmentStore(Protocol):
    """Where files that the model hands over are kept."""

    async def keep(self, chat_id: ChatId, owner_id: OwnerId, file_id: str, file: FileData) -> None:
        """Keep a file for a chat; one that is there already is left alone.

        Raises:
            TooManyFiles: the chat holds as many as it may.
        """
        ...


class InMemoryAttachmentStore:
    """Keeps files in a dictionary; the fake behind `AttachmentStore`."""

    def __init__(self) -> None:
        self.files: dict[str, FileData] = {}

    async def keep(self, chat_id: ChatId, owner_id: OwnerId, file_id: str, file: FileData) -> None:
        """Remember the file."""
        self.files.setdefault(file_id, file)


@dataclass(frozen=True, slots=True)
class Call:
    """A call, and what it takes to carry it out."""

    execution: Execution
    channel: grpc.aio.Channel
    clock: Clock
    attachment_store: AttachmentStore
    location: WorkspaceLocation

    @property
    def processes(self) -> ProcessServiceStub:
        """The processes of the chat's node."""
        return ProcessServiceStub(self.channel)

    @property
    def files(self) -> FileServiceStub:
        """The files of the chat's node."""
        return FileServiceStub(self.channel)

    @property
    def context(self) -> workspace_pb2.WorkspaceContext:
        """The workspace and the chat."""
        return workspace_pb2.WorkspaceContext(
            workspace_id=self.location.workspace_id,
            epoch=self.location.epoch,
            chat_id=self.execution.chat_id,
            # No argument of a tool changes this: a model has no say in how it is confined.
            profile=sandbox_pb2.SANDBOX_PROFILE_WORKSPACE_WRITE,
            network=sandbox_pb2.NETWORK_ACCESS_UNSPECIFIED,
        )

    @property
    def request_id(self) -> str:
        """The id under which a change is journaled."""
        return self.execution.dispatch.execution_id

    @property
    def key(self) -> execution_pb2.ExecutionKey:
        """The key under which a change is made at most once."""
        return key_of(self.execution)

    @property
    def budget_bytes(self) -> int:
        """How large the result may be."""
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
    """A node did not come back in time.

    Attributes:
        cause: What was last seen of it, in a few words.
    """

    def __init__(self, cause: str) -> None:
        super().__init__(f"the node of the workspace did not come back: {cause}")
        self.cause = cause


class NodeStopping(Exception):
    """A node answers that it is about to stop."""


async def retry_until_back(clock: Clock, ask: Callable[[bool], Awaitable[R]]) -> R:
    """Return what a node answers; one that is away, as while it starts again, is waited for.

    Args:
        clock: Time.
        ask: Asks for something that may be asked for again; is told whether it was before.

    Raises:
        NodeAway: It did not come back in time.
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
            cause = cause_of(error)
        if clock.monotonic() >= give_up_at:
            raise NodeAway(cause)
        await clock.sleep(pause_s)
        pause_s = min(max(AGAIN_S, 2 * pause_s), AGAIN_S_MAX)
        is_again = True


async def look(
    call: Call, method: Callable[..., Awaitable[R]], request: Any, timeout_s: float = ANSWER_S
) -> R:
    """Ask for something that changes nothing, so again if the answer got lost.

    Raises:
        NodeAway: The node did not come back in time.
        grpc.aio.AioRpcError: It refused.
    """

    async def ask(is_again: bool) -> R:
        return await method(request, timeout=timeout_s, wait_for_ready=is_again)

    return await retry_until_back(call.clock, ask)


def is_lost(error: grpc.aio.AioRpcError) -> bool:
    """Return whether nobody can say if a request arrived."""
    return error.code() in AMBIGUOUS


def cause_of(error: grpc.aio.AioRpcError) -> str:
    """Return in a few words why a request failed."""
    problem = plain_problem(error)
    return problem.message or problem.reason


def present(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that say something: not empty, not false, not nothing."""
    return {name: value for name, value in fields.items() if value not in ("", False, None, 0, [])}
