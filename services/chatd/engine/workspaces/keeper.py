"""The keeper of workspaces: what time brings, and what becomes of those on nodes that are lost."""

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol

from chatd.domain.chat import WorkerId
from chatd.domain.errors import WorkspaceNotFound
from chatd.domain.workspaces.commands import Command, LoseNode, Remove, Stop, Use, Warn
from chatd.domain.workspaces.errors import WorkspaceNotReady
from chatd.domain.workspaces.lifetime import is_due, is_warning_due
from chatd.domain.workspaces.nodes import Node
from chatd.domain.workspaces.workspace import USABLE, State, StopReason, Workspace
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

EVERY_S = 4.0
ROWS_MAX = 100

logger = logging.getLogger(__name__)


class KeptWorkspaces(Protocol):
    """Workspaces as time and nodes change them."""

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Decide and write."""
        ...

    async def due(self, rows_max: int) -> Sequence[tuple[Workspace, datetime]]:
        """Return those whose time has come for something, with the time."""
        ...

    async def orphaned(self, rows_max: int) -> Sequence[Workspace]:
        """Return scratch workspaces whose chats were deleted."""
        ...

    async def on_node(self, node_id: str) -> Sequence[Workspace]:
        """Return what is on a node."""
        ...

    async def worked_in(self, worker_id: WorkerId) -> Sequence[Workspace]:
        """Return those of chats that a worker runs."""
        ...


class KeptNodes(Protocol):
    """Nodes as time changes them."""

    async def lose(self) -> Sequence[Node]:
        """Call those lost that fell silent, and return them."""
        ...

    async def drained(self) -> Sequence[Node]:
        """Return those whose time to drain is over."""
        ...

    async def leave(self, node_id: str) -> None:
        """Let a node be gone that said so and is empty."""
        ...


class KnownNodes(Protocol):
    """What a process remembers of nodes."""

    async def refresh(self) -> None:
        """Read it again."""
        ...


class _NothingKnown:
    async def refresh(self) -> None:
        """Remember nothing."""


class Keeper:
    """Stops what is over, warns before, deletes what was kept long enough, looks after nodes.

    Args:
        worker_id: Whose chats keep their workspaces in use here.
        workspaces: What it looks after.
        nodes: Where they are.
        clock: Time between two rounds; what is due is told by the database.
        chance: Sets apart the rounds of different processes.
        known: What is remembered of nodes, read again in every round.
    """

    def __init__(
        self,
        worker_id: WorkerId,
        workspaces: KeptWorkspaces,
        nodes: KeptNodes,
        clock: Clock,
        *,
        chance: Callable[[], float],
        known: KnownNodes | None = None,
    ) -> None:
        self._worker_id = worker_id
        self._workspaces = workspaces
        self._nodes = nodes
        self._clock = clock
        self._chance = chance
        self._known = known or _NothingKnown()

    async def run(self) -> None:
        """Go round for ever."""
        while True:
            await self._clock.sleep(EVERY_S * (0.75 + 0.5 * self._chance()))
            try:
                await self.use()
                await self.keep_time()
                await self.keep_order()
                await self.keep_nodes()
                await self._known.refresh()
            except DatabaseUnavailable as outage:
                logger.warning("workspaces are not looked after: %s", outage)
            except Exception:
                logger.exception("looking after workspaces failed")

    async def use(self) -> None:
        """Keep the workspaces of the chats that work here in use."""
        for workspace in await self._workspaces.worked_in(self._worker_id):
            await self._apply(workspace, Use())

    async def keep_time(self) -> None:
        """Do what is due: autostop, its warning, the end of what was kept."""
        for workspace, now in await self._workspaces.due(ROWS_MAX):
            if workspace.state is State.STOPPED:
                await self._apply(workspace, Remove())
            elif is_due(workspace.deadline_at, now):
                await self._apply(workspace, Stop(StopReason.AUTOSTOP))
            elif is_warning_due(workspace.deadline_at, workspace.warned_for, now):
                await self._apply(workspace, Warn())

    async def keep_order(self) -> None:
        """Remove what chats left behind that were deleted."""
        for workspace in await self._workspaces.orphaned(ROWS_MAX):
            await self._apply(workspace, Remove())

    async def keep_nodes(self) -> None:
        """Give up what was on lost nodes, and empty those that are taken out."""
        for node in await self._nodes.lose():
            logger.warning(
                "a node fell silent", extra={"node_id": node.id, "address": node.address}
            )
            for workspace in await self._workspaces.on_node(node.id):
                await self._apply(workspace, LoseNode(node.id))
        for node in await self._nodes.drained():
            for workspace in await self._workspaces.on_node(node.id):
                if workspace.state in USABLE or workspace.state is State.PREPARING:
                    await self._apply(workspace, Stop(StopReason.DRAIN))
            await self._nodes.leave(node.id)

    async def _apply(self, workspace: Workspace, command: Command) -> None:
        # It moved meanwhile: what it is now will be looked at in the next round.
        with suppress(WorkspaceNotReady, WorkspaceNotFound):
            await self._workspaces.apply(workspace.id, command)
