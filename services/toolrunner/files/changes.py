"""File changes: planned, stored for undo, and only then committed, one at a time per workspace.

Theory: the file worker plans a change without writing and returns the previous content of the
files. That is stored, synced, as pending; then the worker gets the commit request. If it dies in
between, a new one rolls back the applied part, so that a change is made as a whole or not at all,
and the caller may retry. Changes that are pending after a restart of the service are rolled back
the same way, before anything else is done in the workspace.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeVar

from parley.cache import BoundedCache
from toolrunner.checkpoints.domain import NO_MODE, Entry, EntryKind
from toolrunner.checkpoints.scan import KeptChange
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.undo_store import Undone, UndoRecord, UndoStore
from toolrunner.files.worker_pool import FileWorkerPool
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.protocol import (
    Commit,
    Done,
    PlanDelete,
    PlanEdits,
    PlanMove,
    Planned,
    PlanPatch,
    PlanRestore,
    PlanUpload,
    PlanWrite,
    RollBack,
    Stat,
    StatPath,
)
from toolrunner.fileworker.values import Change, Image
from toolrunner.fileworker.values import EntryKind as ImageKind
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone, OutcomeUnknown
from toolrunner.spawner import end_marked

Plan = PlanWrite | PlanEdits | PlanPatch | PlanUpload | PlanMove | PlanDelete
T = TypeVar("T")

READS_MAX: Final = 20_000
#: Deleting a large directory takes long.
COMMIT_S: Final = 600.0


@dataclass
class ReadEtags:
    """The content of files that each chat saw last; bounded, and lost at a restart."""

    _etags: BoundedCache[tuple[WorkspaceId, ChatId, str], str] = field(
        default_factory=lambda: BoundedCache(READS_MAX)
    )

    def saw(self, scope: Scope, path: str, etag: str) -> None:
        """Record the content that a chat has seen."""
        self._etags.put((scope.workspace_id, scope.chat_id, path), etag)

    def is_stale(self, scope: Scope, change: Change) -> bool:
        """Return whether a file was changed since the chat that changes it has read it."""
        seen = self._etags.get((scope.workspace_id, scope.chat_id, change.path))
        return seen is not None and seen != change.before_etag


@dataclass(frozen=True, slots=True)
class ChangeResult:
    """The changes of files, and which of them had changed since the chat read them."""

    changes: tuple[Change, ...]
    planned: Planned
    stale_paths: frozenset[str]
    done: Done = field(default_factory=Done)


@dataclass
class _Turn:
    """The lock of one workspace, with the number of its users."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    wanted: int = 0


@dataclass(frozen=True, slots=True)
class _Commit:
    """A change to commit, and the images to roll it back."""

    request_id: str
    token: str
    images: tuple[Image, ...]
    undone: Undone | None = None


@dataclass
class FileChanges:
    """Applies and undoes changes, one at a time in each workspace."""

    file_workers: FileWorkerPool
    workspaces: Workspaces
    read_etags: ReadEtags
    new_token: Callable[[], str]
    checkpoints: Checkpoints | None = None  # None if nothing is kept for turns.
    _turns: dict[WorkspaceId, _Turn] = field(default_factory=dict)
    _recovered: set[WorkspaceId] = field(default_factory=set)

    async def recover(self, workspace_id: WorkspaceId) -> None:
        """Roll back pending changes, if that was not done yet.

        Raises:
            FileWorkerGone: The file worker exited; retry.
        """
        if workspace_id not in self._recovered:
            async with self._lock(workspace_id):
                await self._recover(workspace_id)

    @asynccontextmanager
    async def alone(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        """Prevent other changes of files, in a context.

        Raises:
            FileWorkerGone: The file worker exited; retry.
        """
        async with self._lock(workspace_id):
            await self._recover(workspace_id)
            yield

    async def apply(
        self, scope: Scope, request_id: str, plan: Plan, *, dry_run: bool = False
    ) -> ChangeResult:
        """Make a change as a whole, or not at all.

        Raises:
            FileRefused: It is refused, and nothing was changed.
            FileWorkerGone: The file worker exited, and nothing was changed.
            OutcomeUnknown: The file worker exited, and the change could not be rolled back.
        """
        async with self._lock(scope.workspace_id):
            await self._recover(scope.workspace_id)
            planned = await self._plan(scope.workspace_id, plan)
            stale = frozenset(
                change.path for change in planned.changes if self.read_etags.is_stale(scope, change)
            )
            done = Done()
            if not dry_run and not planned.problems and planned.images:
                with self._settling(scope.workspace_id):
                    commit = _Commit(request_id, plan.token, planned.images)
                    record, done = await self._commit(scope, commit)
                    await self._stored(scope.workspace_id, lambda store: store.finish(record))
            if not dry_run and not planned.problems:
                for change in planned.changes:
                    self.read_etags.saw(scope, change.path, change.etag)
            return ChangeResult(planned.changes, planned, stale, done)

    async def undo(
        self, scope: Scope, request_id: str, *, edit_request_id: str, path: str, guards_git: bool
    ) -> ChangeResult:
        """Restore files to their state before a change.

        Raises:
            FileRefused: There is none, or a file has changed since.
            FileWorkerGone: The file worker exited, and nothing was changed.
            OutcomeUnknown: The file worker exited, and the change could not be rolled back.
        """
        workspace_id, chat_id = scope.workspace_id, scope.chat_id
        async with self._lock(workspace_id):
            await self._recover(workspace_id)
            if edit_request_id:
                record = await self._stored(
                    workspace_id, lambda store: store.by_request(edit_request_id, chat_id)
                )
                images = () if record is None else record.images
            else:
                real = await self._real(workspace_id, path)
                record = await self._stored(
                    workspace_id, lambda store: store.by_path(real, chat_id)
                )
                found = () if record is None else record.images
                images = tuple(image for image in found if image.belongs_to(real))
            if record is None:
                text = "no change is known that could be undone; it was undone, or is too old"
                raise FileRefused(Reason.NOTHING_TO_UNDO, text, path=path)
            return await self._undo(scope, request_id, record, images, guards_git=guards_git)

    async def _undo(
        self,
        scope: Scope,
        request_id: str,
        record: UndoRecord,
        images: tuple[Image, ...],
        *,
        guards_git: bool,
    ) -> ChangeResult:
        token = self.new_token()
        planned = await self._plan(scope.workspace_id, PlanRestore(token, images, guards_git))
        paths = frozenset(image.path for image in images)
        undone = Undone(record.sequence, tuple(paths))
        with self._settling(scope.workspace_id):
            commit = _Commit(request_id, token, planned.images, undone)
            undoing, _ = await self._commit(scope, commit)
            await self._stored(scope.workspace_id, lambda store: store.finish(undoing))
        for change in planned.changes:
            self.read_etags.saw(scope, change.path, change.etag)
        return ChangeResult(planned.changes, planned, frozenset())

    async def _plan(self, workspace_id: WorkspaceId, plan: Plan | PlanRestore) -> Planned:
        planned = await self.file_workers.ask(workspace_id, plan)
        assert isinstance(planned, Planned), "a plan is answered by what it would do"
        return planned

    async def _commit(self, scope: Scope, commit: "_Commit") -> tuple[UndoRecord, Done]:
        await self._keep(scope, commit)
        file_worker_id = self.file_workers.process_of(scope.workspace_id)
        record = await self._stored(
            scope.workspace_id,
            lambda store: store.begin(
                token=commit.token,
                request_id=commit.request_id,
                chat_id=scope.chat_id,
                images=commit.images,
                file_worker_id=file_worker_id,
                undone=commit.undone,
            ),
        )
        try:
            done = await self.file_workers.ask(
                scope.workspace_id, Commit(commit.token), limit_s=COMMIT_S
            )
        except FileRefused:
            await self._stored(scope.workspace_id, lambda store: store.drop(record))
            raise
        except FileWorkerGone as error:
            try:
                is_whole = await self._roll_back(scope.workspace_id, record)
            except FileWorkerGone:
                is_whole = False
            if not is_whole:
                raise OutcomeUnknown(commit.request_id) from error
            raise
        assert isinstance(done, Done), "that is what it is answered by"
        if self.checkpoints is not None:
            self.checkpoints.process_ended(scope.workspace_id)
        return record, done

    async def _keep(self, scope: Scope, commit: "_Commit") -> None:
        """Keep what the change replaces for a restore of the turn.

        The images of moves, of large deletions and of their undo do not tell it, so that the tree
        is compared before and after, as for a process.
        """
        if self.checkpoints is None:
            return
        kept = [_kept(image) for image in commit.images]
        is_told = commit.undone is None or all(image.mode is not None for image in commit.images)
        if is_told and None not in kept:
            changes = tuple(change for change in kept if change is not None)
            await self.checkpoints.keep(scope, changes)
        else:
            await self.checkpoints.before_process(scope)

    @contextmanager
    def _settling(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """After an error, have pending changes rolled back before anything else is done."""
        try:
            yield
        except BaseException:
            self._recovered.discard(workspace_id)
            raise

    async def _recover(self, workspace_id: WorkspaceId) -> None:
        if workspace_id in self._recovered:
            return
        pending = await self._stored(workspace_id, lambda store: store.pending())
        # A file worker of an earlier run of the service may still be writing.
        old = frozenset(record.file_worker_id for record in pending if record.file_worker_id)
        await asyncio.to_thread(end_marked, old - {self.file_workers.process_of(workspace_id)})
        for record in pending:
            await self._roll_back(workspace_id, record)
        self._recovered.add(workspace_id)

    async def _roll_back(self, workspace_id: WorkspaceId, record: UndoRecord) -> bool:
        """Roll a change back; return whether all of it could be.

        Raises:
            FileWorkerGone: The file worker exited; the change stays pending, to be retried.
        """
        done = await self.file_workers.ask(workspace_id, RollBack(record.token, record.images))
        assert isinstance(done, Done), "that is what it is answered by"
        await self._stored(workspace_id, lambda store: store.drop(record))
        return done.is_whole

    async def _real(self, workspace_id: WorkspaceId, path: str) -> str:
        found = await self.file_workers.ask(workspace_id, StatPath(path))
        assert isinstance(found, Stat), "that is what it is answered by"
        if found.info is not None:
            return found.resolved_path
        inside = path.removeprefix(self.root_of(workspace_id))
        return "/".join(part for part in inside.split("/") if part not in ("", "."))

    def root_of(self, workspace_id: WorkspaceId) -> str:
        """Return the prefix of absolute paths."""
        return str(self.workspaces.prepared(workspace_id).root)

    async def _stored(self, workspace_id: WorkspaceId, work: Callable[[UndoStore], T]) -> T:
        store = UndoStore(self.workspaces.prepared(workspace_id).undo)
        return await asyncio.to_thread(work, store)

    def forget(self, workspace_id: WorkspaceId) -> None:
        """Drop the state of an unused workspace; the next use checks for pending changes again."""
        self._recovered.discard(workspace_id)

    @asynccontextmanager
    async def _lock(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        turn = self._turns.setdefault(workspace_id, _Turn())
        turn.wanted += 1
        try:
            async with turn.lock:
                yield
        finally:
            turn.wanted -= 1
            if not turn.wanted:
                del self._turns[workspace_id]


def _kept(image: Image) -> KeptChange | None:
    """Return the change of one entry; None if its image does not tell what was there."""
    if image.kind not in (ImageKind.FILE, ImageKind.LINK, ImageKind.DIRECTORY):
        return None
    kind = EntryKind(image.kind)
    before = after = None
    if image.before_etag:
        mode = NO_MODE if image.mode is None else image.mode
        before = Entry(kind, image.before_etag, mode, image.is_kept)
    if image.after_etag:
        # Its content is read by the next scan.
        after = Entry(kind, image.after_etag, is_kept=False)
    content = image.before if kind is not EntryKind.DIRECTORY else None
    return KeptChange(image.path, before, content, after)
