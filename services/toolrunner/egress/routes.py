"""What a process needs to go out: the port of its proxy, and variables that lead there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from toolrunner.egress.domain.grants import Grant
from toolrunner.egress.domain.variables import variables_of
from toolrunner.egress.listeners import Exit
from toolrunner.primitives.domain import ProcessId, WorkspaceId


@dataclass(frozen=True, slots=True)
class EgressRoute:
    """The way out of one workspace.

    Attributes:
        exit: Where the proxy listens for it.
        grants: Secrets that the proxy adds for it.
    """

    exit: Exit
    grants: tuple[Grant, ...] = ()

    def variables(self, *, is_apart: bool, has_proxy: bool) -> Mapping[str, str]:
        """Return variables that lead a process out; none holds a secret.

        Args:
            is_apart: Whether the process is in a network of its own, with a door.
            has_proxy: Whether the proxy is its only way out, and not just that to its secrets.
        """
        if not has_proxy and not self.grants:
            return {}
        if is_apart:
            return variables_of(self.grants, has_proxy=has_proxy)
        return variables_of(
            self.grants, port=self.exit.port, token=self.exit.token, has_proxy=has_proxy
        )


class EgressRoutes(Protocol):
    """Knows the ways out of workspaces."""

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return the way out of a workspace, open, or None if it has none."""
        ...

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return the secrets that a process gets as variables.

        Raises:
            SecretUnavailable: One of them is not given.
        """
        ...


class NoEgress:
    """There is no way out."""

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return None."""
        return None

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return none."""
        return {}
