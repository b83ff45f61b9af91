"""What nodes are told of the secrets that their workspaces may use; values are never among it."""

from collections.abc import Awaitable, Callable
from typing import Final

from chatd.workspaces.domain.secrets import Delivery, Secret
from chatd.workspaces.domain.workspace import Workspace
from parley.api.workspace.v1 import secret_pb2

DELIVERIES: Final = {
    Delivery.PROXY: secret_pb2.SECRET_DELIVERY_PROXY,
    Delivery.GIT: secret_pb2.SECRET_DELIVERY_GIT,
    Delivery.ENVIRONMENT: secret_pb2.SECRET_DELIVERY_ENVIRONMENT,
}

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
