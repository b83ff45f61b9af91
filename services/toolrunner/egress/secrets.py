"""The source of the values of granted secrets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
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
        raise SecretUnavailable(use.name, "this node knows nobody who keeps secrets")


@dataclass(slots=True)
class FakeSecrets:
    """Secrets for tests.

    Attributes:
        values: By name.
        uses: Every use that was requested.
    """

    values: Mapping[str, SecretValue]
    uses: list[SecretUse] = field(default_factory=list)

    async def use(self, use: SecretUse) -> SecretValue:
        """Return the value and record the use.

        Raises:
            SecretUnavailable: There is none of this name.
        """
        self.uses.append(use)
        if use.name not in self.values:
            raise SecretUnavailable(use.name, "it is not granted to this workspace any more")
        return self.values[use.name]
