"""Merges forks into the workspaces that they were copied from, on their nodes."""

from typing import Final, Protocol

from chatd.primitives.domain.ids import OwnerId
from chatd.workspaces.domain.errors import NodeLost, NotAFork, WorkspaceNotReady
from chatd.workspaces.domain.merges import MergeReport, MergeRequest
from chatd.workspaces.domain.nodes import Node
from chatd.workspaces.domain.ports import Nodes
from chatd.workspaces.domain.workspace import USABLE, State, Workspace

#: A stopped workspace has its files, and its node can merge them.
CAN_BE_MERGED: Final = frozenset({*USABLE, State.STOPPED})


class OwnWorkspaces(Protocol):
    """The store of workspaces."""

    async def own(self, workspace_id: str, owner_id: OwnerId) -> Workspace:
        """Return a workspace of an owner.

        Raises:
            WorkspaceNotFound: the owner has no such workspace.
        """
        ...


class MergingHost(Protocol):
    """Merges on a node."""

    async def merge(
        self, node: Node, fork: Workspace, parent: Workspace, request: MergeRequest
    ) -> MergeReport:
        """Merge the changes of a fork into its parent, once for each request id."""
        ...


class ForkMerges:
    """Merges forks.

    Args:
        workspaces: The store of workspaces.
        nodes: The nodes.
        host: The client of nodes.
    """

    def __init__(self, workspaces: OwnWorkspaces, nodes: Nodes, host: MergingHost) -> None:
        self._workspaces = workspaces
        self._nodes = nodes
        self._host = host

    async def merge(self, fork_id: str, owner_id: OwnerId, request: MergeRequest) -> MergeReport:
        """Merge the changes of a fork into its parent.

        Raises:
            WorkspaceNotFound: the owner has no such workspace.
            NotAFork: it is not a fork.
            WorkspaceNotReady: one of both has no files now.
            NodeLost: their node does not exist any more.
            Refusal: the node refuses or does not respond.
        """
        fork = await self._workspaces.own(fork_id, owner_id)
        if not fork.parent_id:
            raise NotAFork(fork.id)
        parent = await self._workspaces.own(fork.parent_id, owner_id)
        for each in (fork, parent):
            if each.state not in CAN_BE_MERGED:
                raise WorkspaceNotReady(each.id, each.state)
        node = None if fork.node_id is None else await self._nodes.find(fork.node_id)
        if node is None:
            raise NodeLost(fork.node_id or "")
        return await self._host.merge(node, fork, parent, request)
