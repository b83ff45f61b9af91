"""What a process needs to go out: the port of its proxy, and variables that lead there."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from toolrunner.domain import WorkspaceId
from toolrunner.egress.grants import Grant
from toolrunner.egress.room import Exit
from toolrunner.egress.variables import variables_of


@dataclass(frozen=True, slots=True)
class WayOut:
    """The way out of one workspace.

    Attributes:
        exit: Where the proxy listens for it.
        grants: Secrets that the proxy adds for it.
    """

    exit: Exit
    grants: tuple[Grant, ...] = ()

    def variables(self, *, is_apart: bool) -> Mapping[str, str]:
        """Return variables; `is_apart` for a process in a network of its own, with a door."""
        if is_apart:
            return variables_of(self.grants)
        return variables_of(self.grants, port=self.exit.port, token=self.exit.token)


class Exits(Protocol):
    """Knows the ways out of workspaces."""

    async def way_out(self, workspace_id: WorkspaceId) -> WayOut | None:
        """Return the way out of a workspace, open, or None if it has none."""
        ...


class NoExits:
    """There is no way out."""

    async def way_out(self, workspace_id: WorkspaceId) -> WayOut | None:
        """Return None."""
        return None
