"""Clients of the nodes of workspaces for requests of users; tools use their own channels."""

from collections.abc import Awaitable
from typing import Final, TypeVar

import grpc

from chatd.workspaces.domain.ports import WorkspaceLocation
from parley.api.workspace.v1.checkpoint_service_pb2_grpc import CheckpointServiceStub
from parley.api.workspace.v1.execution_service_pb2_grpc import ExecutionServiceStub
from parley.api.workspace.v1.file_service_pb2_grpc import FileServiceStub
from parley.api.workspace.v1.git_service_pb2_grpc import GitServiceStub
from parley.api.workspace.v1.process_service_pb2_grpc import ProcessServiceStub
from parley.cache import BoundedCache
from parley.rpc import Address, Channels, Problem, Refusal, problem_of

RETRY_AFTER_S: Final = 1.0
PLACES_MAX: Final = 10_000

#: Codes that concern the request itself, so that they are returned to the caller.
ABOUT_THE_REQUEST: Final = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    }
)
AWAY: Final = Problem.of(
    "UPSTREAM_UNAVAILABLE",
    "The node of this workspace does not answer; try again, with the same request id if this was "
    "to change something.",
    retry_after_s=RETRY_AFTER_S,
)
NOT_SERVED: Final = Problem.of(
    "UNIMPLEMENTED",
    "The node of this workspace does not serve this yet.",
)

R = TypeVar("R")


class Nodes:
    """Finds the node of a workspace; without a placement it is the one that its id hashes to."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels
        self._addresses: BoundedCache[str, Address] = BoundedCache(PLACES_MAX)

    def placed(self, location: WorkspaceLocation) -> None:
        """Record the location of a workspace, right before a request to it."""
        self._addresses.put(location.workspace_id, Address.parse(location.address))

    def address(self, workspace_id: str) -> Address:
        """Return the address of a workspace's node."""
        known = self._addresses.get(workspace_id)
        return self._channels.address_for(workspace_id) if known is None else known

    def executions(self, workspace_id: str) -> ExecutionServiceStub:
        """Return the execution service of a workspace's node."""
        return ExecutionServiceStub(self._channel(workspace_id))

    def processes(self, workspace_id: str) -> ProcessServiceStub:
        """Return the process service of a workspace's node."""
        return ProcessServiceStub(self._channel(workspace_id))

    def files(self, workspace_id: str) -> FileServiceStub:
        """Return the file service of a workspace's node."""
        return FileServiceStub(self._channel(workspace_id))

    def git(self, workspace_id: str) -> GitServiceStub:
        """Return the Git service of a workspace's node."""
        return GitServiceStub(self._channel(workspace_id))

    def checkpoints(self, workspace_id: str) -> CheckpointServiceStub:
        """Return the checkpoint service of a workspace's node."""
        return CheckpointServiceStub(self._channel(workspace_id))

    def _channel(self, workspace_id: str) -> grpc.aio.Channel:
        address = self._addresses.get(workspace_id)
        if address is None:
            return self._channels.for_key(workspace_id)
        return self._channels.also(address)


async def answered(call: Awaitable[R]) -> R:
    """Return a node's response.

    Raises:
        Refusal: The node refuses, does not implement this, or does not respond.
    """
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise node_error_of(error) from error


def node_error_of(error: grpc.aio.AioRpcError) -> Exception:
    """Convert a node's error for the caller; an internal error is returned unchanged."""
    problem = problem_of(error)
    has_own_reason = problem.reason != error.code().name
    match error.code():
        case grpc.StatusCode.UNIMPLEMENTED:
            return Refusal(NOT_SERVED)
        case grpc.StatusCode.UNAVAILABLE if has_own_reason:
            return Refusal(problem)
        case grpc.StatusCode.UNAVAILABLE | grpc.StatusCode.CANCELLED:
            return Refusal(AWAY)
        case code if code in ABOUT_THE_REQUEST:
            return Refusal(problem)
        case _:
            return error
