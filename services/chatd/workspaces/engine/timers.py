"""The keeper of workspaces: what time brings, and what becomes of those on nodes that are lost."""

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
#: A scratch workspace that was made this long ago was made for a call that has had its time.
IDLE: Final = timedelta(seconds=15)
DRAINED: Final = frozenset({*USABLE, State.PREPARING})

logger = logging.getLogger(__name__)


class TimedWorkspaces(Protocol):
    """Workspaces as time and nodes change them."""

    async def apply_all(self, commands: Iterable[tuple[Seen, Command]]) -> None:
        """Decide on workspaces that were just read, and write all of it at once."""
        ...

    async def due(self, rows_max: int) -> Sequence[Seen]:
        """Return those whose time has come for something."""
        ...

    async def orphaned(self, rows_max: int) -> Sequence[Seen]:
        """Return scratch workspaces whose chats were deleted."""
        ...

    async def of_suspended(self, rows_max: int) -> Sequence[tuple[Seen, bool]]:
        """Return what users have who are locked out, and whether they are gone for good."""
        ...

    async def on_node(self, node_id: str) -> Sequence[Seen]:
        """Return what is on a node."""
        ...

    async def idle_scratch(self, idle: timedelta) -> Sequence[Seen]:
        """Return scratch workspaces that nobody uses, of nodes that are nearly full."""
        ...

    async def on_lost_nodes(self, rows_max: int) -> Sequence[Seen]:
        """Return what was on lost nodes and does not say so yet."""
        ...

    async def used_by_worker(self, worker_id: WorkerId) -> Sequence[Seen]:
        """Return those of chats that a worker runs."""
        ...


class TimedNodes(Protocol):
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


class PolicyPublisher(Protocol):
    """Whoever tells nodes of policies."""

    async def publish_all(self) -> None:
        """Tell what was not told yet."""
        ...


class _NoNodeUpdates:
    async def refresh(self) -> None:
        """Remember nothing."""

    async def publish_all(self) -> None:
        """Tell nobody."""


class WorkspaceTimers:
    """Stops what is over, warns before, deletes what was kept long enough, looks after nodes.

    Args:
        worker_id: Whose chats keep their workspaces in use here.
        workspaces: What it looks after.
        nodes: Where they are.
        clock: Time between two rounds; what is due is told by the database.
        jitter: Sets apart the rounds of different processes.
        known: What is remembered of nodes, read again in every round.
        policies: Tells nodes what they were not told.
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

    async def run(self) -> None:
        """Go round for ever."""
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
        """Keep the workspaces of the chats that work here in use."""
        working = await self._workspaces.used_by_worker(self._worker_id)
        await self._workspaces.apply_all((seen, Use()) for seen in working)

    async def apply_deadlines(self) -> None:
        """Do what is due: autostop, its warning, the end of what was kept."""
        due = await self._workspaces.due(ROWS_MAX)
        await self._workspaces.apply_all((seen, _due(seen)) for seen in due)

    async def remove_orphans(self) -> None:
        """Remove what chats left behind that were deleted, and end what nobody may use."""
        left = await self._workspaces.orphaned(ROWS_MAX)
        await self._workspaces.apply_all((seen, Remove()) for seen in left)
        suspended = await self._workspaces.of_suspended(ROWS_MAX)
        await self._workspaces.apply_all(
            (seen, Remove() if is_gone else Stop(StopReason.OWNER_GONE))
            for seen, is_gone in suspended
        )

    async def expire_nodes(self) -> None:
        """Give up what was on lost nodes, and empty those that are taken out."""
        for node in await self._nodes.lose():
            logger.warning(
                "a node fell silent", extra={"node_id": node.id, "address": node.address}
            )
        # Not only of those: who noticed it may have died before it was done.
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
        """Stop scratch workspaces that nobody uses where others could not be made any more."""
        idle = await self._workspaces.idle_scratch(IDLE)
        await self._workspaces.apply_all((seen, Stop(StopReason.QUOTA)) for seen in idle)


def _due(seen: Seen) -> Command:
    if seen.workspace.state is State.STOPPED:
        return Remove()
    return Stop(StopReason.AUTOSTOP) if is_due(seen.workspace.deadline_at, seen.at) else Warn()
