"""The hosts that a workspace reached, in the responses to calls of chats."""

from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from parley.api.workspace.v1 import workspace_pb2
from toolrunner.egress.domain.reached import ReachedHost
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.processes.rpc.inputs import canonical_uuid, scope_of

SHOWN_MAX: Final = 16


class ReachingResponse(Protocol):
    """A response with the hosts that were reached."""

    @property
    def reached(self) -> workspace_pb2.ReachedHosts:
        """The hosts."""
        ...


R = TypeVar("R", bound=ReachingResponse)


class ReachRecord(Protocol):
    """Knows the hosts that processes of workspaces reached."""

    async def join(self, workspace_id: WorkspaceId, tree_id: str) -> None:
        """Record from when on chats of a tree use a workspace."""
        ...

    async def reached_since(
        self, workspace_id: WorkspaceId, tree_id: str
    ) -> tuple[ReachedHost, ...]:
        """Return the hosts that a workspace reached since a tree of chats uses it."""
        ...


class NothingReached:
    """Of nodes without an egress proxy."""

    async def join(self, workspace_id: WorkspaceId, tree_id: str) -> None:
        """Do nothing."""

    async def reached_since(
        self, workspace_id: WorkspaceId, tree_id: str
    ) -> tuple[ReachedHost, ...]:
        """Return none."""
        return ()


@dataclass(frozen=True, slots=True)
class CallReach:
    """A call, and what its response says of the network.

    Attributes:
        tree_id: The first chat of the caller's tree; empty if no chat calls.
    """

    record: ReachRecord
    workspace_id: WorkspaceId
    tree_id: str

    async def hosts(self) -> workspace_pb2.ReachedHosts | None:
        """Return the hosts; to be asked after everything else that the response contains."""
        if not self.tree_id:
            return None
        reached = await self.record.reached_since(self.workspace_id, self.tree_id)
        if not reached:
            return None
        return workspace_pb2.ReachedHosts(
            hosts=[each.host for each in reached if not each.is_git][:SHOWN_MAX],
            git_hosts=[each.host for each in reached if each.is_git][:SHOWN_MAX],
        )


async def begun_call(record: ReachRecord, context: workspace_pb2.WorkspaceContext) -> CallReach:
    """Record that a chat uses a workspace, before its call does anything."""
    scope = scope_of(context)
    tree_id: str = scope.chat_id
    if context.ancestor_chat_ids and tree_id:
        tree_id = canonical_uuid(context.ancestor_chat_ids[-1], "context.ancestor_chat_ids")
    if tree_id:
        await record.join(scope.workspace_id, tree_id)
    return CallReach(record, scope.workspace_id, tree_id)


def with_reached(response: R, reached: workspace_pb2.ReachedHosts | None) -> R:
    """Add the hosts to a response that was made without them, as the journal keeps it."""
    if reached is not None:
        response.reached.CopyFrom(reached)
    return response
