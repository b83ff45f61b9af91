"""Grants of secrets as sent to nodes; they never contain values."""

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
    """Return no secrets."""
    return ()


def grant_to_proto(secret: Secret) -> secret_pb2.SecretGrant:
    """Convert a secret without its value to the grant that nodes and owners see."""
    return secret_pb2.SecretGrant(
        name=secret.name,
        delivery=DELIVERIES[secret.delivery],
        hosts=secret.hosts,
        header=secret.header,
        variable=secret.variable,
    )
