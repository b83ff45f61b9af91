"""The source of the values of granted secrets."""

from dataclasses import dataclass
from typing import Protocol

from toolrunner.egress.domain.errors import SecretUnavailable
from toolrunner.egress.domain.grants import SecretValue
from toolrunner.primitives.domain import WorkspaceId


@dataclass(frozen=True, slots=True)
class SecretUse:
    """One use of a secret, as it is requested and audited.

    Attributes:
        workspace_id: The workspace of the grant.
        name: The secret.
        host: The host it is sent to.
        purpose: Method and path of the request, without its query.
    """

    workspace_id: WorkspaceId
    name: str
    host: str
    purpose: str


class SecretSource(Protocol):
    """Returns values, one for each use."""

    async def use(self, use: SecretUse) -> SecretValue:
        """Return the value for this one use.

        Raises:
            SecretUnavailable: The grant was revoked, or the source is unavailable.
        """
        ...


class NoSecrets:
    """No secrets are available."""

    async def use(self, use: SecretUse) -> SecretValue:
        """Raise.

        Raises:
            SecretUnavailable: Always.
        """
        raise SecretUnavailable(use.name, "this node has no service that stores secrets")
