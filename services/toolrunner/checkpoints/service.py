"""Keeps what files were before a turn changes them, and plans their restore.

Theory: file tools name the paths that they change, so their previous content is stored before the
change. A process may change anything, so the whole tree is read before the first process of a turn
and soon after its processes ended; what differs is what the turn changed. Contents are read once
and again only after they changed. No failure here prevents the work itself.
"""

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import Final, TypeVar

from parley.clock import Clock
from parley.rpc import detached
from parley.tasks import BackgroundTasks, Supervision
from toolrunner.checkpoints.domain import (
    NO_AGENTS,
    OUTSIDE,
    EntryKind,
    Outcome,
    Step,
    Turn,
    Wanted,
    step_of,
    wanted_by,
)
from toolrunner.checkpoints.recording import Recorder, WorkspaceState
from toolrunner.checkpoints.scan import KeptChange, Limits, Scan
from toolrunner.checkpoints.store import Bounds, CheckpointStore, Restore, has_store
from toolrunner.directories.workspaces import Workspaces
from toolrunner.filesystem.beneath import Root
from toolrunner.primitives.domain import Scope, WorkspaceId
from toolrunner.primitives.errors import WorkspaceNotFound

T = TypeVar("T")

logger = logging.getLogger(__name__)

#: The longest time between the end of a process and the scan that finds its changes.
SETTLE_S: Final = 1.0
#: It is this many times as long as the last scan took.
SETTLE_SHARE: Final = 20
#: Processes of a turn that start within this time after a scan need no other.
GAP_S: Final = 60.0
#: So many files of checkpoints stay open, beside those of workspaces in use. Closing one writes it
#: to the disk, so it is rarely to happen between two turns of a chat.
OPEN_MAX: Final = 256


class RestoreNotFound(Exception):
    """There is no restore of that id to undo."""


@dataclass(frozen=True, slots=True)
class Preview:
    """What a restore would do.

    Attributes:
        steps: The paths.
        is_incomplete: Whether changes are not known, or not any more.
    """

    steps: tuple[Step, ...]
    is_incomplete: bool


def nothing_runs(workspace_id: WorkspaceId) -> frozenset[str]:
    """Return that no chat has running processes."""
    return frozenset()


class Checkpoints:
    """The checkpoints of all workspaces of this node; owns the task that finds changes.

    Args:
        workspaces: The directories of workspaces.
        clock: The clock.
        supervision: Isolates failures of the task.
        bounds: How much is kept for each workspace.
        limits: How much of a tree is read.
        open_max: How many files stay open, beside those of workspaces in use.

    Attributes:
        running: Returns the chats with running processes in a workspace; an empty id stands for a
            person.
    """

    def __init__(
        self,
        workspaces: Workspaces,
        clock: Clock,
        supervision: Supervision,
        bounds: Bounds = Bounds(),  # noqa: B008 (it is a constant)
        limits: Limits = Limits(),  # noqa: B008 (it is a constant)
        open_max: int = OPEN_MAX,
    ) -> None:
        self.running: Callable[[WorkspaceId], frozenset[str]] = nothing_runs
        self._workspaces = workspaces
        self._clock = clock
        self._tasks = BackgroundTasks(supervision)
        self._bounds = bounds
        self._limits = limits
        self._open_max = open_max
        self._recorder = Recorder(clock, limits)
        self._states: dict[WorkspaceId, WorkspaceState] = {}
        self._working: list[tuple[WorkspaceId, str]] = []  # Authors without processes.
        self._has_ended = asyncio.Event()
        self._are_many = asyncio.Event()

    async def __aenter__(self) -> "Checkpoints":
        await self._tasks.__aenter__()
        self._tasks.keep("checkpoints.settle", self._settle_all)
        self._tasks.keep("checkpoints.close", self._close_unused)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._tasks.__aexit__(kind, error, traceback)
        for state in self._states.values():
            state.close()

    async def before_process(self, scope: Scope) -> None:
        """Store the files of a workspace before a process of a turn or of a person changes them."""
        if not scope.turn_id:
            await self._before_person(scope.workspace_id)
            return
        turn, workspace_id = Turn(scope.chat_id, scope.turn_id), scope.workspace_id
        state = self._state(workspace_id)
        async with state.lock:
            if turn in state.open_turns:
                return
            running = self._authors(workspace_id)
            # What others changed who have ended since must not count as this turn's too.
            is_alone = not state.has_person and all(
                each.chat_id in running for each in state.open_turns
            )
            is_recent = self._clock.monotonic() - state.scanned_s < GAP_S
            if turn in state.turns and is_recent and is_alone:
                await self._attempt(
                    workspace_id,
                    lambda store, root: self._recorder.begin(store, turn, running),
                    None,
                )
            else:
                await self._attempt(
                    workspace_id,
                    lambda store, root: self._recorder.scan(store, root, running, begun=turn),
                    None,
                )
                state.scanned(running, self._clock.monotonic())
                state.turns = {each for each in state.turns if each.chat_id in running}
            state.begin(turn)

    async def _before_person(self, workspace_id: WorkspaceId) -> None:
        """Count a person as an author of what changes from now on, beside the turns that run."""
        if not has_store(self._workspaces.at(workspace_id).directory):
            return
        state = self._state(workspace_id)
        async with state.lock:
            running = self._authors(workspace_id)

            def begin(store: CheckpointStore, root: Root) -> bool:
                is_shared = any(turn != OUTSIDE for turn in store.open_turns())
                if is_shared:
                    self._recorder.scan(store, root, running, begun=OUTSIDE)
                return is_shared

            if await self._attempt(workspace_id, begin, False):
                state.scanned(running, self._clock.monotonic())
                state.is_dirty = True
            state.has_person = True

    @asynccontextmanager
    async def author(self, scope: Scope) -> AsyncIterator[None]:
        """Count what changes in a context as changed by a turn, or by a person."""
        work = (scope.workspace_id, scope.chat_id)
        self._working.append(work)
        try:
            await self.before_process(scope)
            yield
        finally:
            self._working.remove(work)
            self.process_ended(scope.workspace_id)

    def process_ended(self, workspace_id: WorkspaceId) -> None:
        """Have the changes of a process found soon."""
        state = self._states.get(workspace_id)
        if state is not None and state.is_dirty:
            state.has_ended = True
            self._has_ended.set()

    async def settle(self, workspace_id: WorkspaceId) -> None:
        """Find what the processes of a workspace changed until now."""
        state = self._state(workspace_id)
        async with state.lock:
            await self._settle(workspace_id, state)

    async def keep(self, scope: Scope, changes: tuple[KeptChange, ...]) -> None:
        """Store the entries that a file tool is about to change."""
        turn = Turn(scope.chat_id, scope.turn_id) if scope.turn_id else OUTSIDE

        def work(store: CheckpointStore, root: Root) -> None:
            with store.transaction(is_synced=True):
                self._recorder.keep(store, root, turn, changes)
                store.prune(self._now())

        await self._tasks.complete(self._alone(scope.workspace_id, work), context=detached())

    async def preview(
        self, scope: Scope, turn: Turn, agents: frozenset[str] = NO_AGENTS
    ) -> Preview:
        """Return what a restore of a chat to the start of a turn would do.

        Raises:
            OSError: The files cannot be read.
            sqlite3.Error: The checkpoints cannot be read.
        """

        def work(store: CheckpointStore, root: Root) -> Preview:
            with store.transaction(is_synced=False):
                wanted = wanted_by(turn, store.changes_since(turn, agents), agents)
                steps = self._steps(store, root, wanted)
            return Preview(steps, store.is_incomplete(turn, agents))

        return await self.settled(scope.workspace_id, work)

    async def plan(
        self,
        scope: Scope,
        restore_id: str,
        turn: Turn,
        undoes: str,
        agents: frozenset[str] = NO_AGENTS,
    ) -> Restore:
        """Return the plan of a restore, stored at the first call.

        Args:
            scope: The workspace.
            restore_id: Its id.
            turn: The first turn to take back.
            undoes: The restore to take back instead; empty for none.
            agents: The agents that the chat started since.

        Raises:
            RestoreNotFound: There is none to undo.
            OSError: The files cannot be read.
            sqlite3.Error: The checkpoints cannot be written.
        """

        def work(store: CheckpointStore, root: Root) -> Restore:
            with store.transaction(is_synced=True):
                if (known := store.restore(restore_id)) is not None:
                    return known
                wanted = wanted_by(turn, store.changes_since(turn, agents), agents)
                if undoes:
                    undone = store.restore(undoes)
                    if undone is None or undone.turn.chat_id != turn.chat_id:
                        raise RestoreNotFound
                    wanted = _wanted_back(undone)
                steps = self._steps(store, root, wanted)
                store.plan(restore_id, turn, undoes, steps, self._now())
            return Restore(restore_id, turn, undoes, False, steps)

        return await self.settled(scope.workspace_id, work)

    async def sizes(self, workspace_id: WorkspaceId, steps: Iterable[Step]) -> dict[str, int]:
        """Return the sizes of the contents to restore, by etag."""
        etags = {step.target.etag for step in steps if step.target is not None}
        async with self._state(workspace_id).lock:
            return await self._work(workspace_id, lambda store, root: store.sizes(etags))

    async def contents(
        self, workspace_id: WorkspaceId, steps: Iterable[Step]
    ) -> dict[str, bytes | None]:
        """Return the contents to restore, by etag; None for one that is not stored any more."""
        etags = {
            step.target.etag
            for step in steps
            if step.target is not None and step.target.kind is not EntryKind.DIRECTORY
        }
        async with self._state(workspace_id).lock:
            return await self._work(
                workspace_id, lambda store, root: {etag: store.content(etag) for etag in etags}
            )

    async def finish(
        self,
        workspace_id: WorkspaceId,
        restore: Restore,
        steps: tuple[Step, ...],
        agents: frozenset[str] = NO_AGENTS,
    ) -> None:
        """Record what a restore did."""

        def work(store: CheckpointStore, root: Root) -> None:
            with store.transaction(is_synced=True):
                store.finish(restore, steps, agents)
                if store.is_scanned():
                    done = [step for step in steps if step.outcome is Outcome.RESTORED]
                    store.put_tree((step.path, None, step.target) for step in done)

        state = self._state(workspace_id)
        async with state.lock:
            await self._work(workspace_id, work)
            state.turns.clear()
            state.open_turns.clear()

    async def _alone(
        self, workspace_id: WorkspaceId, work: Callable[[CheckpointStore, Root], None]
    ) -> None:
        async with self._state(workspace_id).lock:
            await self._attempt(workspace_id, work, None)

    async def _settle_all(self) -> None:
        while True:
            await self._has_ended.wait()
            ended = [each for each in self._states.items() if each[1].has_ended]
            took_s = min((state.took_s for _, state in ended), default=0.0)
            await self._clock.sleep(min(SETTLE_S, SETTLE_SHARE * took_s))
            self._has_ended.clear()
            for workspace_id, _ in ended:
                # Its thread uses the store, which the end of this service closes.
                await self._tasks.complete(self.settle(workspace_id), context=detached())

    async def _settle(self, workspace_id: WorkspaceId, state: WorkspaceState) -> None:
        running = self._authors(workspace_id)
        begun_s = self._clock.monotonic()
        await self._attempt(
            workspace_id, lambda store, root: self._recorder.scan(store, root, running), None
        )
        state.scanned(running, self._clock.monotonic())
        state.took_s = state.scanned_s - begun_s
        state.has_ended, state.is_dirty = False, bool(running)

    async def settled(
        self, workspace_id: WorkspaceId, work: Callable[[CheckpointStore, Root], T]
    ) -> T:
        """Do work in a thread after the changes of all processes were found; it is not cancelled.

        Raises:
            OSError: The files cannot be read.
            sqlite3.Error: The checkpoints cannot be read.
        """
        return await self._tasks.complete(
            self._settle_and_work(workspace_id, work), context=detached()
        )

    async def _settle_and_work(
        self, workspace_id: WorkspaceId, work: Callable[[CheckpointStore, Root], T]
    ) -> T:
        state = self._state(workspace_id)
        async with state.lock:
            running = self._authors(workspace_id)

            def settle_and_work(store: CheckpointStore, root: Root) -> T:
                if store.open_turns():
                    self._recorder.scan(store, root, running)
                    state.scanned(running, self._clock.monotonic())
                return work(store, root)

            return await self._work(workspace_id, settle_and_work)

    def _steps(self, store: CheckpointStore, root: Root, wanted: list[Wanted]) -> tuple[Step, ...]:
        scan = Scan(store, root, self._limits)
        return tuple(step_of(each, scan.look(each.path)) for each in wanted)

    def _authors(self, workspace_id: WorkspaceId) -> frozenset[str]:
        """Return the chats that may be changing files now; an empty id stands for a person."""
        working = (chat_id for each, chat_id in self._working if each == workspace_id)
        return self.running(workspace_id).union(working)

    def _now(self) -> float:
        return self._clock.now().timestamp()

    def _state(self, workspace_id: WorkspaceId) -> WorkspaceState:
        state = self._states.pop(workspace_id, None) or WorkspaceState()
        # The last used one is the last; those before it are closed first.
        self._states[workspace_id] = state
        if len(self._states) > self._open_max:
            self._are_many.set()
        return state

    async def _close_unused(self) -> None:
        """Close what was not used for longest; in a thread, because it waits for the disk."""
        while True:
            await self._are_many.wait()
            self._are_many.clear()
            unused = [
                (workspace_id, state)
                for workspace_id, state in [*self._states.items()][: -self._open_max]
                if not state.is_dirty and not state.lock.locked()
            ]
            for workspace_id, state in unused:
                del self._states[workspace_id]
                # It is closed although this task ends meanwhile.
                await self._tasks.complete(asyncio.to_thread(_closed, state), context=detached())

    async def _attempt(
        self, workspace_id: WorkspaceId, work: Callable[[CheckpointStore, Root], T], otherwise: T
    ) -> T:
        try:
            return await self._work(workspace_id, work)
        except WorkspaceNotFound:
            logger.debug("a workspace was removed, and nothing is kept for it")
            return otherwise
        except (OSError, sqlite3.Error) as error:
            logger.warning(
                "files before a change could not be kept: %s",
                error,
                extra={"workspace_id": workspace_id},
            )
            return otherwise

    async def _work(
        self, workspace_id: WorkspaceId, work: Callable[[CheckpointStore, Root], T]
    ) -> T:
        """Do work in a thread; for callers that have the lock, and are not cancelled.

        Raises:
            WorkspaceNotFound: The workspace was removed.
        """
        state = self._states[workspace_id]
        try:
            workspace = self._workspaces.prepared(workspace_id)
        except WorkspaceNotFound:
            state.close()
            raise

        def in_thread() -> T:
            store = state.store
            if store is None or not store.is_of(workspace.directory):
                state.close()
                state.store = store = CheckpointStore.open(workspace.directory, self._bounds)
            root = Root.open_directory(str(workspace.root))
            try:
                return work(store, root)
            finally:
                root.close()

        return await asyncio.to_thread(in_thread)


def _closed(state: WorkspaceState) -> None:
    try:
        state.close()
    except sqlite3.Error as error:
        logger.warning("a file of checkpoints could not be closed: %s", error)


def _wanted_back(undone: Restore) -> list[Wanted]:
    return [
        Wanted(step.path, step.found, step.target, is_disputed=False)
        for step in undone.steps
        if step.outcome is Outcome.RESTORED
    ]
