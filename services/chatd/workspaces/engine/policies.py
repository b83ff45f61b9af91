"""Telling nodes what their workspaces may do now, until they go by it."""

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.workspaces.domain.commands import Command, ConfirmPolicy
from chatd.workspaces.domain.nodes import OUT_OF_REACH, Node
from chatd.workspaces.domain.ports import HostAway, HostRefused, Nodes, Seen
from chatd.workspaces.domain.workspace import Workspace

ROWS_MAX: Final = 20

logger = logging.getLogger(__name__)


class UnpublishedPolicies(Protocol):
    """Workspaces whose policies change."""

    async def unpublished(self, rows_max: int) -> Sequence[Seen]:
        """Return those whose nodes go by an older policy than they have."""
        ...

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Decide and write."""
        ...


class PolicyHost(Protocol):
    """Nodes that take up policies."""

    async def update_policy(self, node: Node, workspace: Workspace) -> None:
        """Have a running workspace go by its network, bounds and grants as they are now.

        Raises:
            HostAway: the node does not answer.
            HostRefused: the node has another placement, or lacks this.
        """
        ...


class Policies:
    """Has nodes go by the policies that workspaces have."""

    def __init__(self, workspaces: UnpublishedPolicies, nodes: Nodes, host: PolicyHost) -> None:
        self._workspaces = workspaces
        self._nodes = nodes
        self._host = host

    async def tell(self, workspace: Workspace) -> None:
        """Tell the node of a workspace, if it runs; one that cannot be told is told later.

        A secret that was taken away is refused to the node from now on, told or not.
        """
        if not workspace.is_usable or workspace.node_id is None:
            return
        node = await self._nodes.find(workspace.node_id)
        if node is None or node.state in OUT_OF_REACH:
            return
        try:
            await self._host.update_policy(node, workspace)
        except HostAway as away:
            logger.info("the policy of a workspace waits for its node: %s", away)
            return
        except HostRefused as refused:
            # It has another placement, which is made with the policy of then, or cannot do this.
            logger.warning("a node does not take up a policy: %s", refused)
        await self._workspaces.apply(workspace.id, ConfirmPolicy(workspace.epoch, workspace.policy))

    async def publish_all(self) -> None:
        """Tell what was not told yet, or not heard."""
        for seen in await self._workspaces.unpublished(ROWS_MAX):
            try:
                await self.tell(seen.workspace)
            except WorkspaceNotFound:
                continue
