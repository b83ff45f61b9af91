"""The driver of workspaces: performs the actions that their states require; crash-safe.

A workspace that is pending, preparing or stopping requires an action. A driver claims its row with
a lease, performs one action and writes the result; then the next one. Request ids to a node are
derived from workspace and epoch, so a driver that takes over after a crash sends the same request
and attaches. During a long action the lease is renewed; the renewal also returns whether the
workspace was stopped or claimed by another driver meanwhile: then the action is cancelled.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final, Protocol, assert_never

from chatd.primitives.domain.errors import WorkspaceNotFound
from chatd.primitives.domain.ids import WorkerId
from chatd.workspaces.domain.commands import (
    Command,
    Fail,
    FinishPreparing,
    FinishRemoving,
    FinishStopping,
    MarkNodeLost,
    Place,
)
from chatd.workspaces.domain.errors import NoNode, WorkspaceNotReady
from chatd.workspaces.domain.nodes import OUT_OF_REACH, Node, choose, need_of
from chatd.workspaces.domain.ports import (
    Host,
    HostAway,
    HostRefused,
    LogLine,
    Nodes,
    NotPrepared,
    Prepared,
    Progress,
)
from chatd.workspaces.domain.workspace import (
    DRIVEN,
    NODE_LOST,
    Failure,
    FailureKind,
    NodeId,
    State,
    Workspace,
)
from parley.clock import Clock
from parley.postgres import DatabaseUnavailable
from parley.tasks import is_set_within

logger = logging.getLogger(__name__)

#: Reasons with which a node states that it has a newer placement or none: nothing of this one
#: exists there.
NOT_THERE: Final = frozenset({"STALE_PLACEMENT", "WORKSPACE_NOT_FOUND", "UNIMPLEMENTED"})
#: Reasons with which a node refuses a fork because its parent has a new placement or is deleted.
PARENT_MOVED: Final = frozenset({"STALE_PLACEMENT", "WORKSPACE_NOT_FOUND", "WORKSPACE_NOT_READY"})
#: Reasons after which a node may have capacity again soon.
NO_ROOM: Final = frozenset({"NODE_FULL"})
PARENT_GONE: Final = Failure(
    FailureKind.SOURCE, "What it is a copy of is gone. Fork another one.", is_recreatable=False
)


@dataclass(frozen=True, slots=True)
class DriverTiming:
    """Timeouts and intervals of a driver.

    Attributes:
        lease_s: How long a claim is valid without renewal.
        sweep_s: Interval between two sweeps for unclaimed workspaces.
        retry_s: Delay before a failed action is retried.
        placing_s: How long a node is searched for before the workspace fails.
        away_s: How long a node of the settings, which is never marked as lost, may not respond.
        room_s: How long to wait for capacity on a full node.
    """

    lease_s: float = 15.0
    sweep_s: float = 2.0
    retry_s: float = 2.0
    placing_s: float = 20.0
    away_s: float = 120.0
    room_s: float = 60.0
    driven_max: int = 64


class Driven(Protocol):
    """The store of workspaces as the driver uses it."""

    async def apply(self, workspace_id: str, command: Command) -> tuple[Workspace, Workspace]:
        """Apply a command and write the result; return the workspace before and after."""
        ...

    async def get(self, workspace_id: str) -> Workspace:
        """Return a workspace."""
        ...

    async def claim(
        self, driver_id: WorkerId, lease_s: float, rows_max: int
    ) -> tuple[Workspace, ...]:
        """Claim workspaces that require an action."""
        ...

    async def claim_one(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        """Claim one workspace, None if it requires no action or another driver has it."""
        ...

    async def renew(
        self, driver_id: WorkerId, workspace_id: str, lease_s: float
    ) -> Workspace | None:
        """Renew a claim and return the workspace, None if another driver has it."""
        ...

    async def release(self, driver_id: WorkerId, workspace_id: str, rest_s: float) -> None:
        """Release a claim; the workspace is not claimed again for `rest_s` seconds."""
        ...

    async def log(self, workspace_id: str, epoch: int, lines: list[LogLine]) -> None:
        """Store log lines of a preparation."""
        ...


class Driver:
    """Drives the workspaces that one process has claimed."""

    def __init__(
        self,
        driver_id: WorkerId,
        workspaces: Driven,
        nodes: Nodes,
        host: Host,
        clock: Clock,
        timing: DriverTiming | None = None,
    ) -> None:
        self.driver_id = driver_id
        self._workspaces = workspaces
        self._nodes = nodes
        self._host = host
        self._clock = clock
        self.timing = timing or DriverTiming()
        self._driving: set[str] = set()
        self._wanted: set[str] = set()
        self._changed = asyncio.Event()
        self._troubled_s: dict[tuple[str, int], float] = {}

    def poke(self, workspace: Workspace) -> None:
        """Handle a change of a workspace; if it requires an action, try to claim it at once."""
        if workspace.state in DRIVEN and workspace.id not in self._driving:
            self._wanted.add(workspace.id)
            self._changed.set()

    async def run(self) -> None:
        """Drive unclaimed workspaces until cancelled, a limited number at a time."""
        # After a failure nothing is being driven here any more.
        self._driving.clear()
        async with asyncio.TaskGroup() as tasks:
            while True:
                self._changed.clear()
                try:
                    for workspace in await self._claimed():
                        self._driving.add(workspace.id)
                        tasks.create_task(self._drive_safely(workspace))
                except DatabaseUnavailable as outage:
                    logger.warning("no workspace can be driven: %s", outage)
                await is_set_within(self._changed, self.timing.sweep_s, self._clock)

    async def drive(self, workspace: Workspace) -> Workspace:
        """Drive a claimed workspace until it requires no action, or none is possible now."""
        self._driving.add(workspace.id)
        rest_s = 0.0
        try:
            while workspace.state in DRIVEN:
                after = await self._advance(workspace)
                if after is None:
                    rest_s = self.timing.retry_s
                    break
                workspace = after
            else:
                self._forget_trouble(workspace)
        finally:
            self._driving.discard(workspace.id)
        await self._workspaces.release(self.driver_id, workspace.id, rest_s)
        return workspace

    async def _claimed(self) -> tuple[Workspace, ...]:
        lease_s, room = self.timing.lease_s, self.timing.driven_max - len(self._driving)
        if room <= 0:
            return ()
        wanted, self._wanted = self._wanted, set()
        claimed = [
            await self._workspaces.claim_one(self.driver_id, each, lease_s)
            for each in wanted - self._driving
        ]
        found = await self._workspaces.claim(self.driver_id, lease_s, room)
        known = {each.id: each for each in (*claimed, *found) if each is not None}
        return tuple(each for each in known.values() if each.id not in self._driving)

    async def _drive_safely(self, workspace: Workspace) -> None:
        try:
            await self.drive(workspace)
        except (DatabaseUnavailable, WorkspaceNotFound) as trouble:
            logger.warning("a workspace is left to the next look: %s", trouble)
        except Exception:
            logger.exception("driving a workspace failed", extra={"workspace_id": workspace.id})

    async def _advance(self, workspace: Workspace) -> Workspace | None:
        """Perform one action; return the workspace after it, None if it must be retried later."""
        command: Command | Workspace | None
        match workspace.state:
            case State.PENDING:
                command = await self._place(workspace)
            case State.PREPARING:
                command = await self._kept(workspace, lambda: self._prepare(workspace))
            case State.STOPPING:
                command = await self._kept(workspace, lambda: self._stop(workspace))
            case _:
                return workspace
        if isinstance(command, Workspace):
            return command
        if command is None:
            return None
        with suppress(WorkspaceNotReady):
            _, after = await self._workspaces.apply(workspace.id, command)
            self._forget_trouble(workspace)
            return after
        return await self._workspaces.get(workspace.id)

    async def _kept(
        self, workspace: Workspace, effect: Callable[[], Awaitable[Command | None]]
    ) -> Command | Workspace | None:
        """Return the result of an effect, and renew the claim meanwhile.

        If the state of the workspace changed, the effect is cancelled and the workspace returned;
        if another driver has it by now, None is returned.
        """
        moved: list[Workspace] = []

        async def keep(doing: "asyncio.Task[Command | None]") -> None:
            while True:
                await self._clock.sleep(self.timing.lease_s / 3)
                with suppress(DatabaseUnavailable):
                    seen = await self._workspaces.renew(
                        self.driver_id, workspace.id, self.timing.lease_s
                    )
                    if seen is None or (seen.state, seen.epoch) != (
                        workspace.state,
                        workspace.epoch,
                    ):
                        moved.extend([] if seen is None else [seen])
                        doing.cancel()
                        return

        async with asyncio.TaskGroup() as tasks:
            doing = tasks.create_task(_plain(effect()))
            keeping = tasks.create_task(keep(doing))
            await asyncio.wait((doing,))
            keeping.cancel()
        if doing.cancelled():
            return moved[0] if moved else None
        return doing.result()

    async def _place(self, workspace: Workspace) -> Command | None:
        parent = await self._parent(workspace)
        if workspace.parent_id and (parent is None or parent.state is State.DELETED):
            return Fail(workspace.epoch, PARENT_GONE)
        near = None if parent is None else parent.node_id
        try:
            node = choose(await self._near(near), need_of(workspace.spec, near))
        except NoNode as problem:
            if not self._is_over(workspace, self.timing.placing_s):
                return None
            failure = Failure(FailureKind.NO_NODE, f"{problem}. Start it again later.")
            return Fail(workspace.epoch, failure)
        return Place(node.id, workspace.epoch, 0 if parent is None else parent.epoch)

    async def _near(self, node_id: NodeId | None) -> Sequence[Node]:
        """Return the nodes, and the one that a fork must be on even if it is not registered."""
        nodes = await self._nodes.list()
        if node_id is None or any(node.id == node_id for node in nodes):
            return nodes
        node = await self._nodes.find(node_id)
        return nodes if node is None else (*nodes, node)

    async def _parent(self, workspace: Workspace) -> Workspace | None:
        """Return the parent of a fork."""
        if not workspace.parent_id:
            return None
        with suppress(WorkspaceNotFound):
            return await self._workspaces.get(workspace.parent_id)
        return None

    async def _prepare(self, workspace: Workspace) -> Command | None:
        assert workspace.node_id is not None
        node = await self._nodes.find(workspace.node_id)
        if node is None:
            return Fail(workspace.epoch, NODE_LOST)
        if node.state in OUT_OF_REACH:
            return MarkNodeLost(node.id)
        try:
            async with aclosing(_stream(self._host, node, workspace)) as progress:
                async for each in progress:
                    match each:
                        case LogLine():
                            await self._workspaces.log(workspace.id, workspace.epoch, [each])
                        case Prepared(root_path, git_branch, sandbox_level):
                            return FinishPreparing(
                                workspace.epoch,
                                root_path,
                                git_branch,
                                sandbox_level,
                                workspace.policy,
                            )
                        case NotPrepared(failure):
                            return Fail(workspace.epoch, failure)
                        case _:
                            assert_never(each)
        except HostAway as away:
            logger.info("a workspace waits for its node: %s", away)
        except HostRefused as refused:
            return await self._refused(workspace, node, refused)
        return self._away(workspace, node, Fail(workspace.epoch, NODE_LOST))

    async def _refused(
        self, workspace: Workspace, node: Node, refused: HostRefused
    ) -> Command | None:
        """Return the command after a refusal: a fork whose parent has moved is placed again."""
        failure = Failure(FailureKind.INTERNAL, f"{refused.reason}: {refused.message}")
        if refused.reason in NO_ROOM:
            full = Failure(FailureKind.NO_NODE, f"{refused.message} Start it again later.")
            is_over = self._is_over(workspace, self.timing.room_s)
            return Fail(workspace.epoch, full) if is_over else None
        if refused.reason not in PARENT_MOVED or not workspace.parent_id or workspace.has_files:
            return Fail(workspace.epoch, failure)
        parent = await self._parent(workspace)
        if parent is None or parent.state is State.DELETED:
            return Fail(workspace.epoch, PARENT_GONE)
        if parent.epoch == workspace.spec.source.parent_epoch or parent.node_id != node.id:
            # The parent may be about to move; after the time limit the fork fails.
            is_over = self._is_over(workspace, self.timing.placing_s)
            return Fail(workspace.epoch, failure) if is_over else None
        return Place(node.id, workspace.epoch, parent.epoch)

    def _away(self, workspace: Workspace, node: Node, given_up: Command) -> Command | None:
        """Return None to retry, until a static node did not respond for too long."""
        # For registered nodes the timers decide when they are lost.
        is_over = node.is_static and self._is_over(workspace, self.timing.away_s)
        return given_up if is_over else None

    async def _stop(self, workspace: Workspace) -> Command | None:
        assert workspace.node_id is not None
        node = await self._nodes.find(workspace.node_id)
        done: Command = (
            FinishRemoving(workspace.epoch)
            if workspace.is_removing
            else FinishStopping(workspace.epoch)
        )
        if node is None:
            return done
        if node.state in OUT_OF_REACH:
            return MarkNodeLost(node.id)
        try:
            if workspace.is_removing:
                await self._host.remove(node, workspace)
            else:
                await self._host.stop(node, workspace)
        except HostAway as away:
            logger.info("a workspace is not stopped yet: %s", away)
            lost = Fail(workspace.epoch, NODE_LOST)
            return self._away(workspace, node, done if workspace.is_removing else lost)
        except HostRefused as refused:
            if refused.reason not in NOT_THERE:
                logger.warning("a node refuses to stop a workspace: %s", refused)
                return None
            logger.info("a workspace is not there any more: %s", refused)
        return done

    def _is_over(self, workspace: Workspace, patience_s: float) -> bool:
        now_s = self._clock.monotonic()
        began_s = self._troubled_s.setdefault((workspace.id, workspace.epoch), now_s)
        return now_s - began_s >= patience_s

    def _forget_trouble(self, workspace: Workspace) -> None:
        for key in [each for each in self._troubled_s if each[0] == workspace.id]:
            del self._troubled_s[key]


async def _plain(effect: Awaitable[Command | None]) -> Command | None:
    return await effect


async def _stream(host: Host, node: Node, workspace: Workspace) -> AsyncGenerator[Progress, None]:
    async for each in host.prepare(node, workspace):
        yield each
