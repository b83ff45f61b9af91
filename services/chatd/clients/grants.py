"""What nodes are told of the secrets that their workspaces may use; values are never among it."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from chatd.domain.workspaces.nodes import Node
from chatd.domain.workspaces.ports import HostAway, HostRefused, Nodes
from chatd.domain.workspaces.secrets import Delivery, Secret
from chatd.domain.workspaces.workspace import State, Workspace
from parley.api.workspace.v1 import secret_pb2

logger = logging.getLogger(__name__)

DELIVERIES: Final = {
    Delivery.PROXY: secret_pb2.SECRET_DELIVERY_PROXY,
    Delivery.GIT: secret_pb2.SECRET_DELIVERY_GIT,
    Delivery.ENVIRONMENT: secret_pb2.SECRET_DELIVERY_ENVIRONMENT,
}
HOSTED: Final = (State.READY, State.BUSY)

#: Returns the secrets that a workspace may use.
Granted = Callable[[Workspace], Awaitable[tuple[Secret, ...]]]


async def nothing_granted(workspace: Workspace) -> tuple[Secret, ...]:
    """Grant nothing."""
    return ()


def grant_to_proto(secret: Secret) -> secret_pb2.SecretGrant:
    """Return a secret as a node and its workspace's owner know it."""
    return secret_pb2.SecretGrant(
        name=secret.name,
        delivery=DELIVERIES[secret.delivery],
        hosts=secret.hosts,
        header=secret.header,
        variable=secret.variable,
    )


@dataclass(frozen=True, slots=True)
class GrantNews:
    """Tells the node of a running workspace that its grants are others now.

    Attributes:
        nodes: Where workspaces are.
        update: Asks a node to take up the policy of a workspace.
    """

    nodes: Nodes
    update: Callable[[Node, Workspace], Awaitable[None]]

    async def tell(self, workspace: Workspace) -> None:
        """Tell the node; one that cannot be told hears of it when the workspace starts again.

        What was taken away is refused to the node from now on, whether it was told or not.
        """
        if workspace.state not in HOSTED or workspace.node_id is None:
            return
        node = await self.nodes.find(workspace.node_id)
        if node is None:
            return
        try:
            await self.update(node, workspace)
        except (HostAway, HostRefused) as error:
            logger.warning("the grants of workspace %s wait for its start: %s", workspace.id, error)
