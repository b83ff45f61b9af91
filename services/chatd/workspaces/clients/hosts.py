"""The gRPC client of nodes that host workspaces."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC
from typing import Final

import grpc

from chatd.workspaces.clients.failures import AMBIGUOUS, plain_problem
from chatd.workspaces.clients.merges import report_of, strategy_to_proto
from chatd.workspaces.clients.nodes import answered
from chatd.workspaces.clients.specs import (
    Granted,
    failure_of,
    level_of,
    nothing_granted,
    spec_to_proto,
)
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from chatd.workspaces.domain.nodes import Node
from chatd.workspaces.domain.ports import (
    HostAway,
    HostRefused,
    LogLine,
    NotPrepared,
    Prepared,
    Progress,
)
from chatd.workspaces.domain.spec import Kind
from chatd.workspaces.domain.workspace import Failure, FailureKind, Workspace
from parley.api.workspace.v1 import host_service_pb2, workspace_pb2
from parley.api.workspace.v1.host_service_pb2_grpc import WorkspaceHostServiceStub

PREPARE_S: Final = 3600.0
STOP_S: Final = 120.0

#: The node does not implement the host service; it creates scratch directories by itself.
UNSERVED: Final = Failure(
    FailureKind.NO_NODE,
    "The node makes scratch workspaces only; start a toolrunner that hosts others.",
)


class GrpcHost:
    """Sends requests to nodes over channels.

    Args:
        channel_at: Returns the channel to the address of a node.
        granted: Returns the secrets that a workspace may use.
    """

    def __init__(
        self,
        channel_at: Callable[[str], grpc.aio.Channel],
        granted: Granted = nothing_granted,
    ) -> None:
        self._channel_at = channel_at
        self._granted = granted

    async def prepare(
        self, node: Node, workspace: Workspace, after_line: int = 0
    ) -> AsyncIterator[Progress]:
        """Create or start a workspace; a repeated request for the same placement attaches."""
        request = host_service_pb2.PrepareWorkspaceRequest(
            request_id=f"prepare-{workspace.id}-{workspace.epoch}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
            owner_id=workspace.owner_id,
            spec=spec_to_proto(workspace.spec, await self._granted(workspace)),
            must_exist=workspace.has_files,
            after_log_sequence=after_line,
        )
        call = self._stub(node).PrepareWorkspace(request, timeout=PREPARE_S)
        try:
            async for response in call:
                match response.WhichOneof("kind"):
                    case "log_line":
                        yield _line(response.log_line)
                    case "prepared":
                        yield _prepared(response.prepared)
                        return
                    case "failed":
                        yield NotPrepared(failure_of(response.failed))
                        return
                    case _:
                        return
        except grpc.aio.AioRpcError as error:
            if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
                raise _trouble(error) from error
            is_made_at_use = workspace.kind is Kind.SCRATCH
            yield Prepared() if is_made_at_use else NotPrepared(UNSERVED)
        finally:
            call.cancel()

    async def stop(self, node: Node, workspace: Workspace) -> None:
        """End all processes of a workspace."""
        request = host_service_pb2.WorkspaceHostServiceStopWorkspaceRequest(
            request_id=f"stop-{workspace.id}-{workspace.epoch}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
        )
        await _send_order(self._stub(node).StopWorkspace(request, timeout=STOP_S))

    async def remove(self, node: Node, workspace: Workspace) -> None:
        """Remove a workspace with its files."""
        request = host_service_pb2.RemoveWorkspaceRequest(
            request_id=f"remove-{workspace.id}-{workspace.epoch}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
        )
        await _send_order(self._stub(node).RemoveWorkspace(request, timeout=STOP_S))

    async def update_policy(self, node: Node, workspace: Workspace) -> None:
        """Apply the current network policy, limits and grants to a running workspace.

        Raises:
            HostAway: The node does not respond.
            HostRefused: The node has another placement, or does not implement this.
        """
        spec = spec_to_proto(workspace.spec, await self._granted(workspace))
        request = host_service_pb2.UpdateWorkspacePolicyRequest(
            request_id=f"policy-{workspace.id}-{workspace.epoch}-{workspace.version}",
            workspace_id=workspace.id,
            epoch=workspace.epoch,
            network=spec.network,
            limits=spec.limits,
            secrets=spec.secrets,
        )
        await _send_order(self._stub(node).UpdateWorkspacePolicy(request, timeout=STOP_S))

    async def merge(
        self,
        node: Node,
        fork: Workspace,
        parent: Workspace,
        request: MergeRequest,
    ) -> MergeReport:
        """Merge the changes of a fork into its parent, once for each request id.

        Raises:
            Refusal: The node refuses, does not implement this, or does not respond.
        """
        asked = host_service_pb2.MergeWorkspaceRequest(
            request_id=request.request_id,
            fork_workspace_id=fork.id,
            fork_epoch=fork.epoch,
            parent_workspace_id=parent.id,
            parent_epoch=parent.epoch,
            strategy=strategy_to_proto(request.strategy),
            paths=request.paths,
            dry_run=request.is_dry,
            chat_id=request.chat_id,
            turn_id=request.turn_id,
            owner_epoch=request.owner_epoch,
        )
        answer = await answered(self._stub(node).MergeWorkspace(asked, timeout=STOP_S))
        return report_of(answer.report)

    def _stub(self, node: Node) -> WorkspaceHostServiceStub:
        return WorkspaceHostServiceStub(self._channel_at(node.address))


def _prepared(prepared: host_service_pb2.WorkspacePrepared) -> Prepared:
    return Prepared(prepared.root_path, prepared.git_branch, level_of(prepared.sandbox.level))


def _line(line: workspace_pb2.SetupLogLine) -> LogLine:
    return LogLine(line.sequence, line.logged_at.ToDatetime(tzinfo=UTC), line.stage, line.text)


async def _send_order(call: Awaitable[object]) -> None:
    """Await a request to a node and convert its errors.

    Raises:
        HostAway: The node does not respond.
        HostRefused: The node refuses.
    """
    try:
        await call
    except grpc.aio.AioRpcError as error:
        raise _trouble(error) from error


def _trouble(error: grpc.aio.AioRpcError) -> Exception:
    problem = plain_problem(error)
    if error.code() in AMBIGUOUS or error.code() is grpc.StatusCode.UNAUTHENTICATED:
        return HostAway(f"{problem.reason}: {problem.message}")
    return HostRefused(problem.reason, problem.message)
