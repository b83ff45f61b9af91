"""The merge of a fork into its parent: compared, committed, then applied as a whole."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from parley.rpc import detached
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.checkpoints.turn_reading import newest_turn_id
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.errors import refusal_of, relative_path_of
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import NO_CHAT, ChatId, Scope, WorkspaceId
from toolrunner.primitives.errors import (
    ExecutionCancelled,
    MergeInterrupted,
    MergeSetAside,
    MergeUnfinished,
    NotAFork,
    StaleOwner,
    ToolrunnerError,
    WorkspaceNotReady,
)
from toolrunner.workspaces.domain.placement import HostState, Placement
from toolrunner.workspaces.domain.spec import Fork
from toolrunner.workspaces.host import NEXT_STEP, Host
from toolrunner.workspaces.merge.application import DamagedPlan, Merge
from toolrunner.workspaces.merge.applied import (
    AppliedMerge,
    add_applied,
    applied_merge,
    applied_merges,
)
from toolrunner.workspaces.merge.comparison import Comparison, Conflict, Side, Strategy, compare
from toolrunner.workspaces.merge.fork_base import Base
from toolrunner.workspaces.merge.patches import Patch, patches_of
from toolrunner.workspaces.merge.plan import MergePlan
from toolrunner.workspaces.merge.staging import stage
from toolrunner.workspaces.preparation_runs import HostResources
from toolrunner.workspaces.sources.builder import BASE
from toolrunner.workspaces.store import Request

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """A request to merge a fork into its parent.

    Attributes:
        chat_id: The chat whose turn merges; empty for a person.
        turn_id: That turn.
        owner_epoch: The epoch of the chat's owner.
    """

    fork_id: WorkspaceId
    fork_epoch: int
    parent_id: WorkspaceId
    parent_epoch: int
    strategy: Strategy
    paths: tuple[str, ...] = ()
    is_dry_run: bool = False
    chat_id: ChatId = NO_CHAT
    turn_id: int = 0
    owner_epoch: int = 0

    @property
    def scope(self) -> Scope:
        """The parent, and the turn that changes it."""
        return Scope(self.parent_id, self.chat_id, self.parent_epoch, self.turn_id)


@dataclass(frozen=True, slots=True)
class MergeReport:
    """The result of a merge or of a dry run.

    Attributes:
        applied_merges: Merges of the fork that were applied before, the newest first; of a dry run.
    """

    is_applied: bool
    merged_paths: tuple[str, ...]
    conflicts: tuple[Conflict, ...]
    patches: tuple[Patch, ...] = ()
    left_out: tuple[str, ...] = ()
    applied_merges: tuple[AppliedMerge, ...] = ()


@dataclass(frozen=True, slots=True)
class Merges:
    """Merges forks of this node."""

    host: Host
    resources: HostResources
    checkpoints: Checkpoints
    journal: JournalThread

    async def merge(
        self,
        request: Request,
        requested: MergeRequest,
        encode: Callable[[MergeReport], bytes],
        *,
        has_time: Callable[[], bool],
    ) -> bytes:
        """Merge once; return the serialised report, also for a repeated request.

        It goes on if the caller is cancelled, unless that is a turn which still has time: such a
        turn was interrupted, or its next owner repeats the request. Then nothing is merged that is
        not decided yet.

        Args:
            request: Identifies the request.
            requested: What to merge.
            encode: Serialises the report.
            has_time: Returns whether a caller that is cancelled had time left.

        Raises:
            NotAFork: The one was not made from the other.
            StalePlacement: One of them has a newer placement.
            StaleOwner: A newer owner of the chat has called, or a newer turn.
            MergeInterrupted: A file changed meanwhile, and nothing was merged.
            MergeUnfinished: A merge into the parent can be neither applied nor undone for now.
            MergeSetAside: The plan of an earlier merge is damaged; the next request is executed.
            QuotaExceeded: The parent would exceed its quota, and nothing was merged.
            FileRefused: A file cannot be read, or the disk is full, and nothing was merged.
        """
        given_up = asyncio.Event()
        try:
            return await self.host.tasks.complete(
                self._merge(request, requested, encode, given_up), context=detached()
            )
        except asyncio.CancelledError:
            if requested.turn_id and has_time():
                given_up.set()
            raise

    async def recover(self, placement: Placement) -> None:
        """Complete the merge in which an earlier run of the service was killed, if there is one.

        One that cannot be completed is logged, and its files are kept: the next merge tries again.
        """
        if placement.state in (HostState.REMOVED, HostState.REMOVING):
            return
        async with self.host.lock(placement.workspace_id):
            merge = self._into(placement.workspace_id)
            try:
                plan = await asyncio.to_thread(merge.pending)
                if plan is not None:
                    await self._end(merge, plan)
                else:
                    await asyncio.to_thread(merge.clear)
            except (MergeInterrupted, MergeUnfinished, OSError) as error:
                logger.error(
                    "a merge that was begun could not be completed: %s",
                    error,
                    extra={"workspace_id": placement.workspace_id},
                )

    async def _merge(
        self,
        request: Request,
        requested: MergeRequest,
        encode: Callable[[MergeReport], bytes],
        given_up: asyncio.Event,
    ) -> bytes:
        # Always in the same order, so that two merges cannot deadlock.
        first, second = sorted((requested.fork_id, requested.parent_id))
        async with self.host.lock(first), self.host.lock(second):
            if requested.chat_id:
                chat_id, owner_epoch = requested.chat_id, requested.owner_epoch
                await self.journal.run(lambda journal: journal.admit(chat_id, owner_epoch))
            known = await self.resources.placements.answer(request)
            if known is not None:
                return known
            self._check(requested)
            await self._require_turn(requested)
            merge = self._into(requested.parent_id)
            if await self._finish_pending(merge):
                known = await self.resources.placements.answer(request)
                if known is not None:
                    return known
            try:
                plan, response = await asyncio.to_thread(self._plan, request, requested, encode)
                await self.resources.points.reached("merge.staged", requested.parent_id)
                # Staging takes time, in which the turn may be interrupted and another one begin.
                await self._require_turn(requested)
                if given_up.is_set():
                    raise ExecutionCancelled(request.request_id)
            except OSError as error:
                await asyncio.to_thread(merge.clear)
                raise refusal_of(error, relative_path_of(error) or requested.fork_id) from error
            except ToolrunnerError:
                await asyncio.to_thread(merge.clear)
                raise
            if plan is None:
                await self.resources.placements.commit(None, (request, response))
                return response
            try:
                # After a kill the turn is still open, and what recovery merges counts as its.
                async with self.checkpoints.author(requested.scope):
                    fork_id, parent_id = requested.fork_id, requested.parent_id
                    await self.resources.egress.merge_reached(fork_id, parent_id)
                    await asyncio.to_thread(merge.decide, plan)
                    await self.resources.points.reached("merge.decided", requested.parent_id)
                    await self._end(merge, plan)
            except OSError as error:
                await asyncio.to_thread(merge.clear)
                raise MergeInterrupted(relative_path_of(error) or requested.parent_id) from error
            return response

    async def _finish_pending(self, merge: Merge) -> bool:
        """Complete or undo an earlier merge, then remove its files; return whether there was one.

        Raises:
            MergeUnfinished: Neither is possible; its files are kept.
            MergeSetAside: Neither is possible ever; its files are in a directory of the workspace.
        """
        try:
            plan = await asyncio.to_thread(merge.pending)
        except DamagedPlan as error:
            await self._set_aside(merge, error)
            return False
        if plan is not None:
            # One that was undone is as good as none.
            with suppress(MergeInterrupted, OSError):
                await self._end(merge, plan)
        await asyncio.to_thread(merge.clear)
        return plan is not None

    async def _set_aside(self, merge: Merge, damage: DamagedPlan) -> None:
        """Put a damaged plan aside; its staged files are given to the workspace, if there are any.

        Raises:
            MergeUnfinished: They cannot be moved.
            MergeSetAside: They were moved.
        """
        try:
            path = await asyncio.to_thread(merge.set_aside)
        except OSError as error:
            raise MergeUnfinished(damage.path) from error
        logger.error(
            "the plan of a merge is damaged, and its files were set aside: %s",
            path or "none",
            extra={"workspace_id": merge.directory.name},
        )
        if path:
            raise MergeSetAside(path)

    async def _end(self, merge: Merge, plan: MergePlan) -> None:
        """Execute a committed plan, or undo it; afterwards its files are removed.

        Raises:
            MergeInterrupted: The parent changed meanwhile, and the plan was undone.
            OSError: A step failed, and the plan was undone.
            MergeUnfinished: Undoing failed; the plan and its files are kept.
        """
        try:
            await asyncio.to_thread(merge.carry_out, plan)
        except (MergeInterrupted, OSError):
            await asyncio.to_thread(merge.clear)
            raise
        request = Request(plan.request_id, plan.method, plan.body_hash)
        if plan.applied is not None and not plan.is_turned_back:
            await self._record(WorkspaceId(plan.fork_id), plan.applied)
        if not plan.is_turned_back:
            await self.resources.points.reached("merge.applied", merge.directory.name)
            await self.resources.placements.commit(None, (request, plan.response))
        await asyncio.to_thread(merge.clear)

    async def _record(self, fork_id: WorkspaceId, applied: AppliedMerge) -> None:
        """Store what was applied with its fork; the merge holds also if that fails."""
        directory = self.resources.workspaces.at(fork_id).directory
        try:
            await asyncio.to_thread(add_applied, directory, applied)
        except OSError as error:
            logger.warning(
                "what was applied of a fork could not be recorded: %s",
                error,
                extra={"workspace_id": fork_id},
            )

    async def _require_turn(self, requested: MergeRequest) -> None:
        """Refuse a turn after which the chat has worked in the parent in a newer one."""
        if not requested.turn_id or requested.is_dry_run:
            return
        directory = self.resources.workspaces.at(requested.parent_id).directory
        newest_id = await asyncio.to_thread(newest_turn_id, directory, requested.chat_id)
        if newest_id > requested.turn_id:
            raise StaleOwner(requested.owner_epoch, requested.owner_epoch, "turn")

    def _check(self, requested: MergeRequest) -> None:
        fork = self.host.current(requested.fork_id, requested.fork_epoch)
        parent = self.host.current(requested.parent_id, requested.parent_epoch)
        source = fork.spec.source
        if not isinstance(source, Fork) or source.parent_id != requested.parent_id:
            raise NotAFork(requested.fork_id)
        for each in (fork, parent):
            if not each.is_sourced or each.state is HostState.PREPARING:
                step = NEXT_STEP.get(each.state, "wait_for_it")
                raise WorkspaceNotReady(each.workspace_id, each.state, step)

    def _plan(
        self, request: Request, requested: MergeRequest, encode: Callable[[MergeReport], bytes]
    ) -> tuple[MergePlan | None, bytes]:
        """Compare, and stage new files; return the plan, None if there is nothing to apply."""
        workspaces = self.resources.workspaces
        fork_directory = workspaces.at(requested.fork_id).directory
        base = Base.load(fork_directory / BASE)
        fork_root = Root.open_directory(str(workspaces.at(requested.fork_id).root))
        parent_root = Root.open_directory(str(workspaces.at(requested.parent_id).root))
        try:
            fork = Side(fork_root, base, is_fork=True)
            parent = Side(parent_root, base, is_fork=False)
            found = compare(base, fork, parent, strategy=requested.strategy, paths=requested.paths)
            is_applied = not requested.is_dry_run and _is_wanted(found, requested.strategy)
            paths = tuple(change.path for change in found.changes)
            is_refused = requested.strategy is Strategy.REPORT and bool(found.conflicts)
            shown = () if is_refused else paths
            is_dry = requested.is_dry_run
            patches = patches_of(found.changes, fork, parent) if is_dry or is_applied else ()
            response = encode(
                MergeReport(
                    is_applied,
                    shown,
                    found.conflicts,
                    patches if is_dry else (),
                    found.left_out,
                    applied_merges(fork_directory) if is_dry else (),
                )
            )
            if not is_applied:
                return None, response
            quota = workspaces.quota_of(requested.parent_id)
            merge = self._into(requested.parent_id)
            is_private = merge.is_private()
            with merge.places(is_private=is_private) as places:
                steps = stage(found.changes, fork, places, quota)
            names = (request.request_id, request.method, request.body_hash)
            now = self.resources.clock.now()
            applied = applied_merge(request.request_id, now, paths, patches)
            plan = MergePlan(
                steps,
                *names,
                response,
                fork_id=requested.fork_id,
                applied=applied,
                is_private=is_private,
            )
            return plan, response
        finally:
            fork_root.close()
            parent_root.close()

    def _into(self, parent_id: WorkspaceId) -> Merge:
        workspace = self.resources.workspaces.at(parent_id)
        return Merge(workspace.directory, workspace.root)


def _is_wanted(found: Comparison, strategy: Strategy) -> bool:
    if strategy is Strategy.REPORT and found.conflicts:
        return False
    return bool(found.changes)
