"""The host service: workspaces on this node are prepared, stopped and removed, each step durable.

Theory: each request is first stored with the placement epoch, then executed, then stored as done,
together with the response. Every step between the two is idempotent, so the next run of the service
continues where this one was killed. Requests for one workspace are serialised; a preparation runs
concurrently with them, so that it can be stopped.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Final
from weakref import WeakValueDictionary

import msgspec

from parley.rpc import detached
from parley.tasks import BackgroundTasks, Supervision
from toolrunner.primitives.domain import NODE_EPOCH, Scope, WorkspaceId
from toolrunner.primitives.errors import (
    NodeDraining,
    NodeFull,
    StalePlacement,
    ToolrunnerError,
    WorkspaceNotFound,
    WorkspaceNotReady,
)
from toolrunner.spawner.client.spawner import GRACE_S
from toolrunner.workspaces.domain.placement import (
    GONE,
    LIVE,
    Failure,
    FailureKind,
    HostState,
    Outcome,
    Placement,
)
from toolrunner.workspaces.domain.spec import Fork, Policy, Scratch, Source, WorkspaceSpec
from toolrunner.workspaces.egress import OVER
from toolrunner.workspaces.preparation import Preparation, options_of
from toolrunner.workspaces.preparation_runs import (
    HostResources,
    PreparationEvent,
    PreparationRuns,
    decode_outcome,
)
from toolrunner.workspaces.sources.builder import SourceFailed, check_fork
from toolrunner.workspaces.store import Request
from toolrunner.workspaces.termination import Stopped, WorkspaceTermination

logger = logging.getLogger(__name__)

NEXT_STEP: Final = {
    HostState.PREPARING: "wait_for_it",
    HostState.STOPPING: "wait_for_it",
    HostState.STOPPED: "start_workspace",
    HostState.FAILED: "start_workspace",
    HostState.REMOVING: "create_workspace",
}


@dataclass(frozen=True, slots=True)
class PlacementRequest:
    """A workspace that is requested."""

    workspace_id: WorkspaceId
    epoch: int
    owner_id: str
    spec: WorkspaceSpec
    must_exist: bool = False


class Host:
    """Hosts workspaces; owns the running preparations.

    Attributes:
        is_draining: Whether no new workspace is accepted.
        used_at: When each workspace was last used.
    """

    def __init__(
        self,
        resources: HostResources,
        *,
        log_directory: Path,
        workspaces_max: int,
        supervision: Supervision,
        requires_placement: bool = False,
    ) -> None:
        self.is_draining = False
        self.used_at: dict[WorkspaceId, datetime] = {}
        self._resources = resources
        self._workspaces_max = workspaces_max
        self._requires_placement = requires_placement
        self.tasks = BackgroundTasks(supervision)
        # Weak references: locks of workspaces that are not in use are dropped.
        self._locks: WeakValueDictionary[WorkspaceId, asyncio.Lock] = WeakValueDictionary()
        self._preparations = PreparationRuns(resources, self.tasks, log_directory)
        self._termination = WorkspaceTermination(resources, self._preparations)

    async def __aenter__(self) -> "Host":
        await self.tasks.__aenter__()
        resources = self._resources
        resources.workspaces.admission = self
        for placement in resources.placements.all.values():
            if placement.state is not HostState.REMOVED:
                resources.workspaces.options[placement.workspace_id] = options_of(placement)
        for placement in tuple(resources.placements.all.values()):
            self.tasks.create_task(self._recovered(placement))
        self.tasks.create_task(self._tidied())
        return self

    async def _tidied(self) -> None:
        try:
            await self._termination.empty_trash()
        except OSError as error:
            logger.warning("what was thrown away could not all be removed: %s", error)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._preparations.stop()
        try:
            await self.tasks.__aexit__(kind, error, traceback)
        finally:
            for workspace_id in self._resources.placements.all:
                self._resources.source_builder.take_off(workspace_id)

    @property
    def changed(self) -> asyncio.Event:
        """Set when a workspace changed, for the registration."""
        return self._preparations.changed

    @property
    def placements(self) -> dict[WorkspaceId, Placement]:
        """All current and past placements on this node."""
        return self._resources.placements.all

    def check(self, scope: Scope, *, allow_not_ready: bool) -> None:
        """Check a call to a workspace, and record that it is used.

        Raises:
            WorkspaceNotFound: It is not on this node.
            StalePlacement: The call names another placement of it.
            WorkspaceNotReady: It is not ready.
        """
        if scope.epoch == NODE_EPOCH:
            return
        workspace_id = scope.workspace_id
        placement = self.placements.get(workspace_id)
        if placement is None or placement.state is HostState.REMOVED:
            is_missed = self._requires_placement and not allow_not_ready
            if scope.epoch or placement is not None or is_missed:
                raise WorkspaceNotFound(workspace_id)
            return
        if scope.epoch != placement.epoch:
            raise StalePlacement(workspace_id, scope.epoch, placement.epoch)
        if placement.state is not HostState.READY and not allow_not_ready:
            raise WorkspaceNotReady(workspace_id, placement.state, NEXT_STEP[placement.state])
        self.used_at[workspace_id] = self._resources.clock.now()

    def is_removed(self, workspace_id: WorkspaceId) -> bool:
        """Return whether a workspace was removed or is being removed."""
        placement = self.placements.get(workspace_id)
        return placement is not None and placement.state in GONE

    async def prepare(
        self, request: Request, requested: PlacementRequest, *, after: int = 0
    ) -> AsyncGenerator[PreparationEvent, None]:
        """Prepare a workspace or attach to its preparation; yield its log and one end.

        Raises:
            ToolrunnerError: It is refused, and nothing was changed.
        """
        begun = await self.tasks.complete(self._begin(request, requested), context=detached())
        preparation = begun if isinstance(begun, Preparation) else None
        log = (
            self._preparations.log(requested.workspace_id)
            if preparation is None
            else preparation.log
        )
        async for line in log.followed(
            after, lambda: preparation is None or self._preparations.is_over(preparation)
        ):
            yield line
        yield self._preparations.outcome(begun) if isinstance(begun, Preparation) else begun

    async def stop(
        self,
        request: Request | None,
        workspace_id: WorkspaceId,
        epoch: int,
        *,
        grace_s: float = GRACE_S,
        encode: Callable[[Stopped], bytes] = lambda stopped: b"",
    ) -> bytes:
        """End all processes of a workspace and keep its files; return the serialised response.

        Raises:
            StalePlacement: The workspace has a newer placement.
        """

        async def act() -> bytes:
            placement = self._placement(workspace_id, epoch)
            if placement is None or placement.state is HostState.REMOVED:
                return await self._answered(placement, request, encode(Stopped()))
            placement = await self._move(placement, HostState.STOPPING, epoch, request)
            await self._resources.points.reached("stop.begun", workspace_id)
            stopped = await self._termination.end_everything(workspace_id, grace_s)
            await self._resources.points.reached("stop.ended", workspace_id)
            response = encode(stopped)
            await self._move(placement, HostState.STOPPED, epoch, request, response)
            return response

        return await self.tasks.complete(self._once(request, workspace_id, act), context=detached())

    async def remove(
        self,
        request: Request | None,
        workspace_id: WorkspaceId,
        epoch: int,
        *,
        encode: Callable[[int], bytes] = lambda freed_bytes: b"",
    ) -> bytes:
        """Remove a workspace with its files; return the serialised response.

        Raises:
            StalePlacement: The workspace has a newer placement.
            OSError: A file cannot be removed.
        """

        async def act() -> bytes:
            placement = self._placement(workspace_id, epoch) or self._unknown(workspace_id, epoch)
            if placement.state is HostState.REMOVED:
                return await self._answered(placement, request, encode(0))
            placement = await self._move(placement, HostState.REMOVING, epoch, request)
            await self._resources.points.reached("remove.begun", workspace_id)
            freed_bytes = await self._termination.remove_files(workspace_id)
            self.used_at.pop(workspace_id, None)
            response = encode(freed_bytes)
            bare = msgspec.structs.replace(
                placement, spec=WorkspaceSpec(Scratch()), root="", prepared=None, failure=None
            )
            await self._move(bare, HostState.REMOVED, epoch, request, response)
            return response

        return await self.tasks.complete(self._once(request, workspace_id, act), context=detached())

    async def update(
        self, request: Request, workspace_id: WorkspaceId, epoch: int, policy: Policy, answer: bytes
    ) -> bytes:
        """Replace the policy of a workspace; return the serialised response.

        Raises:
            WorkspaceNotFound: It is not on this node.
            StalePlacement: It has a newer placement.
        """

        async def act() -> bytes:
            placement = self.current(workspace_id, epoch)
            spec = msgspec.structs.replace(placement.spec, policy=policy)
            changed = msgspec.structs.replace(placement, spec=spec, epoch=epoch)
            await self._resources.placements.commit(changed, (request, answer))
            if workspace_id in self._resources.workspaces.options:
                # It applies from the next process on.
                self._resources.workspaces.options[workspace_id] = options_of(changed)
            await self._resources.egress.refresh(workspace_id)
            return answer

        return await self.tasks.complete(self._once(request, workspace_id, act), context=detached())

    def current(self, workspace_id: WorkspaceId, epoch: int) -> Placement:
        """Return a workspace of this node.

        Raises:
            WorkspaceNotFound: It is not here.
            StalePlacement: It has a newer placement.
        """
        placement = self._placement(workspace_id, epoch)
        if placement is None or placement.state is HostState.REMOVED:
            raise WorkspaceNotFound(workspace_id)
        return placement

    def lock(self, workspace_id: WorkspaceId) -> asyncio.Lock:
        """Return the lock for changes of a workspace."""
        lock = self._locks.get(workspace_id)
        if lock is None:
            lock = self._locks[workspace_id] = asyncio.Lock()
        return lock

    def _placement(self, workspace_id: WorkspaceId, epoch: int) -> Placement | None:
        placement = self.placements.get(workspace_id)
        if placement is not None and epoch < placement.epoch:
            raise StalePlacement(workspace_id, epoch, placement.epoch)
        return placement

    def _unknown(self, workspace_id: WorkspaceId, epoch: int) -> Placement:
        """Return a placement for an unknown workspace, so that its epoch is stored."""
        now = self._resources.clock.now()
        return Placement(workspace_id, epoch, "", HostState.STOPPED, WorkspaceSpec(Scratch()), now)

    async def _once(
        self,
        request: Request | None,
        workspace_id: WorkspaceId,
        act: Callable[[], Awaitable[bytes]],
    ) -> bytes:
        """Execute under the lock of the workspace, unless the request was answered before."""
        async with self.lock(workspace_id):
            if request is not None:
                known = await self._resources.placements.answer(request)
                if known is not None:
                    return known
            return await act()

    async def _answered(
        self, placement: Placement | None, request: Request | None, response: bytes
    ) -> bytes:
        if request is not None:
            await self._resources.placements.commit(placement, (request, response))
        return response

    async def _move(
        self,
        placement: Placement,
        state: HostState,
        epoch: int,
        request: Request | None,
        response: bytes | None = None,
    ) -> Placement:
        """Store the state of a workspace, with the response if that is known."""
        now = self._resources.clock.now()
        moved = msgspec.structs.replace(placement, state=state, epoch=epoch, changed_at=now)
        answers = () if request is None else ((request, response),)
        await self._resources.placements.commit(moved, *answers)
        if state in OVER:
            self._resources.egress.close(moved.workspace_id)
        self._preparations.changed.set()
        return moved

    async def _begin(self, request: Request, requested: PlacementRequest) -> Outcome | Preparation:
        """Store a requested workspace, and start to prepare it if it is not ready.

        Returns the preparation, or its outcome if it has ended.
        """
        workspace_id = requested.workspace_id
        async with self.lock(workspace_id):
            before = self._placement(workspace_id, requested.epoch)
            known = await self._resources.placements.answer(request)
            if known is not None:
                return decode_outcome(known)
            placement = self._placed(before, requested)
            self._check_parent(before, requested.spec.source)
            if placement.state is HostState.READY and placement.prepared is not None:
                answer = (request, msgspec.json.encode(placement.prepared))
                await self._resources.placements.commit(placement, answer)
                return placement.prepared
            await self._resources.placements.commit(placement, (request, None))
            self._preparations.changed.set()
            preparation = self._preparations.start(placement)
            preparation.requests[request.request_id] = request
            return preparation

    def _check_parent(self, before: Placement | None, source: Source) -> None:
        """Refuse a new fork that is not possible.

        Raises:
            ForkNotPossible: Not with the requested mode.
            WorkspaceNotFound: There is no such workspace here.
            StalePlacement: It has a newer placement.
            WorkspaceNotReady: Its files are not complete.
        """
        if not isinstance(source, Fork) or (before is not None and before.is_sourced):
            return
        check_fork(source)
        parent = self.current(source.parent_id, source.parent_epoch)
        if not parent.is_sourced or parent.state is HostState.REMOVING:
            step = NEXT_STEP.get(parent.state, "wait_for_it")
            raise WorkspaceNotReady(parent.workspace_id, parent.state, step)

    def _placed(self, before: Placement | None, requested: PlacementRequest) -> Placement:
        """Return the new placement of a requested workspace."""
        if before is None or before.state is HostState.REMOVED:
            if self.is_draining:
                raise NodeDraining
            if sum(each.state in LIVE for each in self.placements.values()) >= self._workspaces_max:
                raise NodeFull("workspaces")
            return Placement(
                requested.workspace_id,
                requested.epoch,
                requested.owner_id,
                HostState.PREPARING,
                requested.spec,
                self._resources.clock.now(),
                must_exist=requested.must_exist,
            )
        match before.state:
            case HostState.PREPARING | HostState.READY:
                return msgspec.structs.replace(before, epoch=requested.epoch)
            case HostState.STOPPED | HostState.FAILED:
                return msgspec.structs.replace(
                    before,
                    epoch=requested.epoch,
                    owner_id=requested.owner_id or before.owner_id,
                    state=HostState.PREPARING,
                    spec=requested.spec,
                    attempt=before.attempt + 1,
                    log_start=len(self._preparations.log(before.workspace_id).lines),
                    must_exist=requested.must_exist,
                    failure=None,
                    changed_at=self._resources.clock.now(),
                )
            case _:
                step = NEXT_STEP[before.state]
                raise WorkspaceNotReady(before.workspace_id, before.state, step)

    async def _show_again(self, placement: Placement) -> None:
        """Mount the overlay of a workspace again; without it the workspace fails."""
        try:
            self._resources.source_builder.show_again(placement.workspace_id, placement.spec.source)
        except SourceFailed as error:
            failure = Failure(FailureKind.SOURCE, str(error), error.is_recreatable)
            failed = msgspec.structs.replace(placement, failure=failure)
            async with self.lock(placement.workspace_id):
                await self._move(failed, HostState.FAILED, placement.epoch, None)

    async def _remove_again(self, workspace_id: WorkspaceId) -> None:
        """Remove the directory that the adoption of an ended process created again."""
        async with self.lock(workspace_id):
            directory = self._resources.workspaces.at(workspace_id).directory
            if self.is_removed(workspace_id) and directory.exists():
                await self._termination.remove_files(workspace_id)

    async def _recovered(self, placement: Placement) -> None:
        """Continue the operation in which an earlier run of the service was killed."""
        workspace_id, epoch = placement.workspace_id, placement.epoch
        try:
            match placement.state:
                case HostState.PREPARING:
                    async with self.lock(workspace_id):
                        if not placement.is_sourced:
                            # The process that made its files may still run, without an owner.
                            await self._resources.processes.end_workspace(workspace_id, 0.0)
                        self._preparations.start(placement)
                case HostState.STOPPING:
                    await self.stop(None, workspace_id, epoch)
                case HostState.REMOVING:
                    await self.remove(None, workspace_id, epoch)
                case HostState.REMOVED:
                    await self._remove_again(workspace_id)
                case HostState.READY:
                    await self._show_again(placement)
                case _:
                    return
        except (OSError, ToolrunnerError):
            logger.exception("a workspace could not be brought to where it was going")
