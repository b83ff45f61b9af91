"""Egress routes of processes: the port of the proxy, and the variables that point to it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from toolrunner.egress.domain.grants import Grant
from toolrunner.egress.domain.variables import variables_of
from toolrunner.egress.listeners import Exit
from toolrunner.primitives.domain import ProcessId, WorkspaceId


@dataclass(frozen=True, slots=True)
class EgressRoute:
    """The egress route of one workspace.

    Attributes:
        exit: The proxy's listener for it.
        grants: Secrets that the proxy adds for it.
    """

    exit: Exit
    grants: tuple[Grant, ...] = ()

    def variables(self, *, is_apart: bool, has_proxy: bool) -> Mapping[str, str]:
        """Return variables that point a process to the proxy; none contains a secret.

        Args:
            is_apart: Whether the process is in its own network namespace, with a listener.
            has_proxy: Whether all its requests must use the proxy, or only those that need secrets.
        """
        if not has_proxy and not self.grants:
            return {}
        if is_apart:
            return variables_of(self.grants, has_proxy=has_proxy)
        return variables_of(
            self.grants, port=self.exit.port, token=self.exit.token, has_proxy=has_proxy
        )


class EgressRoutes(Protocol):
    """Returns the egress routes of workspaces."""

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return the open egress route of a workspace, or None if it has none."""
        ...

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return the secrets that a process gets as variables.

        Raises:
            SecretUnavailable: One of them is not available.
        """
        ...


class NoEgress:
    """No workspace has an egress route."""

    async def egress_route(self, workspace_id: WorkspaceId) -> EgressRoute | None:
        """Return None."""
        return None

    async def secret_variables(
        self, workspace_id: WorkspaceId, process_id: ProcessId
    ) -> Mapping[str, str]:
        """Return none."""
        return {}
