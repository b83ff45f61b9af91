"""Where the values of granted secrets come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from toolrunner.egress.domain.errors import SecretUnavailable
from toolrunner.egress.domain.grants import SecretValue
from toolrunner.primitives.domain import WorkspaceId


@dataclass(frozen=True, slots=True)
class SecretUse:
    """One use of a secret, as it is asked for and audited.

    Attributes:
        workspace_id: Whose grant it is.
        name: The secret.
        host: Where it is sent.
        purpose: Method and path of the request, without its query.
    """

    workspace_id: WorkspaceId
    name: str
    host: str
    purpose: str


class SecretSource(Protocol):
    """Gives values, one for each use."""

    async def use(self, use: SecretUse) -> SecretValue:
        """Return the value for this one use.

        Raises:
            SecretUnavailable: It is not granted any more, or nobody can be asked.
        """
        ...


class NoSecrets:
    """There are none."""

    async def use(self, use: SecretUse) -> SecretValue:
        """Refuse.

        Raises:
            SecretUnavailable: Always.
        """
        raise SecretUnavailable(use.name, "this node knows nobody who keeps secrets")


@dataclass(slots=True)
class FakeSecrets:
    """Secrets as a test has them.

    Attributes:
        values: By name.
        uses: Every use that was asked for.
    """

    values: Mapping[str, SecretValue]
    uses: list[SecretUse] = field(default_factory=list)

    async def use(self, use: SecretUse) -> SecretValue:
        """Return the value and note the use.

        Raises:
            SecretUnavailable: There is none of this name.
        """
        self.uses.append(use)
        if use.name not in self.values:
            raise SecretUnavailable(use.name, "it is not granted to this workspace any more")
        return self.values[use.name]
