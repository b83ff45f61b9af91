"""Sends changed policies of workspaces to their nodes until they are applied."""

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
    """The store of workspaces as the policies use it."""

    async def unpublished(self, rows_max: int) -> Sequence[Seen]:
        """Return workspaces whose nodes have applied an older policy."""
        ...

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Apply a command and write the result."""
        ...


class PolicyHost(Protocol):
    """Applies policies on nodes."""

    async def update_policy(self, node: Node, workspace: Workspace) -> None:
        """Apply the current network policy, limits and grants to a running workspace.

        Raises:
            HostAway: the node does not respond.
            HostRefused: the node has another placement, or does not implement this.
        """
        ...


class Policies:
    """Applies the stored policies of workspaces on their nodes."""

    def __init__(self, workspaces: UnpublishedPolicies, nodes: Nodes, host: PolicyHost) -> None:
        self._workspaces = workspaces
        self._nodes = nodes
        self._host = host

    async def publish(self, workspace: Workspace) -> None:
        """Send the policy to the node of a running workspace; a failed request is retried later.

        The node gets no value of a revoked secret from now on, whether or not the request succeeds.
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
            # It has another placement, which is created with the current policy, or does not
            # implement this.
            logger.warning("a node does not take up a policy: %s", refused)
        await self._workspaces.apply(workspace.id, ConfirmPolicy(workspace.epoch, workspace.policy))

    async def publish_all(self) -> None:
        """Send the policies that nodes have not applied yet."""
        for seen in await self._workspaces.unpublished(ROWS_MAX):
            try:
                await self.publish(seen.workspace)
            except WorkspaceNotFound:
                continue
