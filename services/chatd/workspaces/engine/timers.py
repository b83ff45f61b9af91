"""Timed actions on workspaces: deadlines, cleanup, and workspaces on lost nodes."""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Final, Protocol

from chatd.primitives.domain.ids import WorkerId
from chatd.workspaces.domain.commands import Command, MarkNodeLost, Remove, Stop, Use, Warn
from chatd.workspaces.domain.lifetime import is_due
from chatd.workspaces.domain.nodes import Node
from chatd.workspaces.domain.ports import Seen
from chatd.workspaces.domain.workspace import USABLE, State, StopReason
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable

EVERY_S = 4.0
ROWS_MAX = 100
#: How often all workspaces are searched for those without a chat, which takes longest.
ALL_ORPHANS_EVERY_S: Final = 600.0
#: A younger scratch workspace is not stopped as idle: the call it was created for may need it.
IDLE: Final = timedelta(seconds=15)
DRAINED: Final = frozenset({*USABLE, State.PREPARING})

logger = logging.getLogger(__name__)


class TimedWorkspaces(Protocol):
    """The store of workspaces as the timers use it."""

    async def apply_all(self, commands: Iterable[tuple[Seen, Command]]) -> None:
        """Apply commands to workspaces that were just read, and write the results at once."""
        ...

    async def due(self, rows_max: int) -> Sequence[Seen]:
        """Return workspaces with a due deadline."""
        ...

    async def just_orphaned(self, rows_max: int) -> Sequence[Seen]:
        """Return scratch workspaces whose chats were deleted lately."""
        ...

    async def orphaned(self, rows_max: int) -> Sequence[Seen]:
        """Return scratch workspaces whose chats were deleted, or never created."""
        ...

    async def of_suspended(self, rows_max: int) -> Sequence[tuple[Seen, bool]]:
        """Return workspaces of suspended users, and whether the user is deleted."""
        ...

    async def on_node(self, node_id: str) -> Sequence[Seen]:
        """Return the workspaces on a node."""
        ...

    async def idle_scratch(self, idle: timedelta) -> Sequence[Seen]:
        """Return idle scratch workspaces of nodes that are nearly full."""
        ...

    async def on_lost_nodes(self, rows_max: int) -> Sequence[Seen]:
        """Return workspaces on lost nodes that are not marked as failed yet."""
        ...

    async def used_by_worker(self, worker_id: WorkerId) -> Sequence[Seen]:
        """Return workspaces of chats that a worker runs."""
        ...


class TimedNodes(Protocol):
    """The store of nodes as the timers use it."""

    async def lose(self) -> Sequence[Node]:
        """Mark nodes without recent heartbeats as lost, and return them."""
        ...

    async def drained(self) -> Sequence[Node]:
        """Return nodes whose drain period is over."""
        ...

    async def leave(self, node_id: str) -> None:
        """Mark an empty node that is leaving as gone."""
        ...


class KnownNodes(Protocol):
    """The cached list of nodes."""

    async def refresh(self) -> None:
        """Read the list again."""
        ...


class PolicyPublisher(Protocol):
    """Sends policies to nodes."""

    async def publish_all(self) -> None:
        """Send the policies that nodes have not applied yet."""
        ...


class _NoNodeUpdates:
    async def refresh(self) -> None:
        """Do nothing."""

    async def publish_all(self) -> None:
        """Do nothing."""


class WorkspaceTimers:
    """Runs autostops, warnings, deletions after retention, and checks of nodes.

    Args:
        worker_id: The worker whose chats keep their workspaces in use.
        workspaces: The store of workspaces.
        nodes: The store of nodes.
        clock: The clock of the interval; due times are compared by the database.
        jitter: Spreads the rounds of different processes.
        known: The cached list of nodes, read again in every round.
        policies: Sends policies that nodes have not applied yet.
    """

    def __init__(
        self,
        worker_id: WorkerId,
        workspaces: TimedWorkspaces,
        nodes: TimedNodes,
        clock: Clock,
        *,
        jitter: Callable[[], float],
        known: KnownNodes | None = None,
        policies: PolicyPublisher | None = None,
    ) -> None:
        self._worker_id = worker_id
        self._workspaces = workspaces
        self._nodes = nodes
        self._clock = clock
        self._jitter = jitter
        self._known = known or _NoNodeUpdates()
        self._policies = policies or _NoNodeUpdates()
        self._all_orphans_at_s = clock.monotonic()

    async def run(self) -> None:
        """Run rounds until cancelled."""
        while True:
            await self._clock.sleep(EVERY_S * (0.75 + 0.5 * self._jitter()))
            try:
                await self.use()
                await self.apply_deadlines()
                await self.remove_orphans()
                await self.expire_nodes()
                await self.stop_idle_scratch()
                await self._known.refresh()
                await self._policies.publish_all()
            except DatabaseUnavailable as outage:
                logger.warning("workspaces are not looked after: %s", outage)
            except Exception:
                logger.exception("looking after workspaces failed")

    async def use(self) -> None:
        """Record use of the workspaces of chats that run in this process."""
        working = await self._workspaces.used_by_worker(self._worker_id)
        await self._workspaces.apply_all((seen, Use()) for seen in working)

    async def apply_deadlines(self) -> None:
        """Apply due deadlines: autostop, warning, and deletion after retention."""
        due = await self._workspaces.due(ROWS_MAX)
        await self._workspaces.apply_all((seen, _due(seen)) for seen in due)

    async def remove_orphans(self) -> None:
        """Remove workspaces without a chat, and stop those of suspended users."""
        left = await self._orphans()
        await self._workspaces.apply_all((seen, Remove()) for seen in left)
        suspended = await self._workspaces.of_suspended(ROWS_MAX)
        await self._workspaces.apply_all(
            (seen, Remove() if is_gone else Stop(StopReason.OWNER_GONE))
            for seen, is_gone in suspended
        )

    async def _orphans(self) -> Sequence[Seen]:
        if self._clock.monotonic() < self._all_orphans_at_s:
            return await self._workspaces.just_orphaned(ROWS_MAX)
        left = await self._workspaces.orphaned(ROWS_MAX)
        if len(left) < ROWS_MAX:
            self._all_orphans_at_s = self._clock.monotonic() + ALL_ORPHANS_EVERY_S
        return left

    async def expire_nodes(self) -> None:
        """Mark workspaces on lost nodes as failed, and stop those on drained nodes."""
        for node in await self._nodes.lose():
            logger.warning(
                "a node fell silent", extra={"node_id": node.id, "address": node.address}
            )
        # Not only those just marked: the process that marked a node may have died before this step.
        lost = await self._workspaces.on_lost_nodes(ROWS_MAX)
        await self._workspaces.apply_all(
            (seen, MarkNodeLost(seen.workspace.node_id))
            for seen in lost
            if seen.workspace.node_id is not None
        )
        for node in await self._nodes.drained():
            there = await self._workspaces.on_node(node.id)
            await self._workspaces.apply_all(
                (seen, Stop(StopReason.DRAIN)) for seen in there if seen.workspace.state in DRAINED
            )
            await self._nodes.leave(node.id)

    async def stop_idle_scratch(self) -> None:
        """Stop idle scratch workspaces on nodes where no others could be created."""
        idle = await self._workspaces.idle_scratch(IDLE)
        await self._workspaces.apply_all((seen, Stop(StopReason.QUOTA)) for seen in idle)


def _due(seen: Seen) -> Command:
    if seen.workspace.state is State.STOPPED:
        return Remove()
    return Stop(StopReason.AUTOSTOP) if is_due(seen.workspace.deadline_at, seen.at) else Warn()
