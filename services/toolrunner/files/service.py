"""The file service of this node; the exit of its context ends the file workers."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, TypeVar

from parley.clock import Clock, patient
from parley.rpc import detached
from parley.tasks import BackgroundTasks, Supervision
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.changes import ChangeResult, FileChanges, Plan, ReadEtags
from toolrunner.files.idempotency import IdempotentEffects
from toolrunner.files.restores import FileRestores
from toolrunner.files.worker_channel import ANSWER_S
from toolrunner.files.worker_pool import FileWorkerPool, find_git, find_ripgrep
from toolrunner.filesystem.beneath import is_absent
from toolrunner.filesystem.errors import FileRefused, Reason, not_found
from toolrunner.fileworker.git.repositories import holds_no_repository
from toolrunner.fileworker.protocol import (
    Answer,
    DropUpload,
    MakeDirectory,
    Page,
    PlanUpload,
    ReadPage,
    Request,
    StartUpload,
    UploadChunk,
)
from toolrunner.journal.records import FileEffect
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import Scope, WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone, OutcomeUnknown
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.spawner.client.spawner import Spawner

A = TypeVar("A", bound=Answer)

#: The longest time that an upload may send nothing.
SILENCE_S: Final = 60.0
UPLOADS_MAX: Final = 64
UPLOADS_PER_WORKSPACE_MAX: Final = 8


@dataclass
class UploadSlots:
    """The slots of uploads; each holds a file and a call open."""

    _taken: Counter[WorkspaceId] = field(default_factory=Counter)

    @contextmanager
    def place(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """Take a slot in a context.

        Raises:
            FileRefused: All slots of this workspace, or of the node, are taken.
        """
        if self._taken[workspace_id] >= UPLOADS_PER_WORKSPACE_MAX:
            raise _full(f"this workspace has {UPLOADS_PER_WORKSPACE_MAX} uploads already")
        if self._taken.total() >= UPLOADS_MAX:
            raise _full(f"this node has {UPLOADS_MAX} uploads already")
        self._taken[workspace_id] += 1
        try:
            yield
        finally:
            self._taken[workspace_id] -= 1
            if not self._taken[workspace_id]:
                del self._taken[workspace_id]


def _full(why: str) -> FileRefused:
    text = f"{why}; try again when one is through"
    return FileRefused(Reason.NODE_FULL, text, resource="uploads")


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """What to undo: all changes of a request, or a chat's last change of a file."""

    edit_request_id: str
    path: str
    guards_git: bool


class FileService:
    """Reads, changes and finds files; owns its background tasks.

    Attributes:
        restores: Restores files to the start of a turn.
        new_token: Makes tokens of changes.
    """

    def __init__(
        self,
        *,
        journal: JournalThread,
        spawner: Spawner,
        workspaces: Workspaces,
        sandbox: Sandbox,
        clock: Clock,
        supervision: Supervision,
        new_id: Callable[[], str],
        checkpoints: Checkpoints,
    ) -> None:
        self._tasks = BackgroundTasks(supervision)
        self._file_workers = FileWorkerPool(
            spawner=spawner,
            workspaces=workspaces,
            sandbox=sandbox,
            clock=clock,
            new_id=new_id,
            ripgrep=find_ripgrep(),
            tasks=self._tasks,
            git=find_git(),
        )
        self._read_etags = ReadEtags()
        self._workspaces = workspaces
        self._changes = FileChanges(
            self._file_workers, workspaces, self._read_etags, new_id, checkpoints
        )
        self.restores = FileRestores(
            checkpoints, self._file_workers, self._changes, workspaces, self._tasks, journal
        )
        self._idempotent_effects = IdempotentEffects(journal, self._tasks)
        self._upload_slots = UploadSlots()
        self._clock = clock
        self.new_token = new_id

    async def __aenter__(self) -> "FileService":
        await self._tasks.__aenter__()
        self._tasks.keep("file_workers.expire", self._forget_idle)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self._tasks.__aexit__(kind, error, traceback)
        finally:
            self._file_workers.close()

    async def _forget_idle(self) -> None:
        async with aclosing(self._file_workers.end_idle()) as ended:
            async for workspace_id in ended:
                self._changes.forget(workspace_id)

    async def ask(
        self, scope: Scope, request: Request, kind: type[A], *, limit_s: float = ANSWER_S
    ) -> A:
        """Return the answer to a request that changes nothing.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The file worker exited; retry.
        """
        await self._workspaces.admit(scope)
        await self._changes.recover(scope.workspace_id)
        answer = await self._file_workers.ask(scope.workspace_id, request, limit_s=limit_s)
        assert isinstance(answer, kind), "each request has its answer"
        return answer

    def holds_no_repository(self, scope: Scope) -> bool:
        """Return whether a workspace certainly has no repository, without starting its file worker.

        Raises:
            ToolrunnerError: The workspace may not be used.
        """
        self._workspaces.check(scope)
        return holds_no_repository(str(self._workspaces.at(scope.workspace_id).root))

    async def require_present(self, scope: Scope, path: str, *, in_home: bool = False) -> None:
        """Refuse a path at which there is nothing, without starting the file worker.

        Raises:
            FileRefused: There is nothing.
            FileWorkerGone: The file worker exited while pending changes were rolled back; retry.
        """
        await self._workspaces.admit(scope)
        await self._changes.recover(scope.workspace_id)
        workspace = self._workspaces.at(scope.workspace_id)
        if is_absent(str(workspace.home if in_home else workspace.root), path):
            raise not_found(path)

    async def read(self, scope: Scope, request: ReadPage) -> Page:
        """Return a page, and record what the chat has seen.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The file worker exited; retry.
        """
        page = await self.ask(scope, request, Page)
        if page.etag and not request.in_home:
            self._read_etags.saw(scope, page.info.path, page.etag)
        return page

    async def stream(
        self, scope: Scope, request: Request, *, limit_s: float = ANSWER_S
    ) -> AsyncGenerator[Answer, None]:
        """Yield the answers to a request that changes nothing.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The file worker exited; retry.
        """
        await self._workspaces.admit(scope)
        await self._changes.recover(scope.workspace_id)
        async with aclosing(
            self._file_workers.stream(scope.workspace_id, request, limit_s=limit_s)
        ) as answers:
            async for answer in answers:
                yield answer

    async def change(
        self,
        effect: FileEffect,
        scope: Scope,
        plan: Plan,
        encode: Callable[[ChangeResult], bytes],
        *,
        dry_run: bool = False,
    ) -> bytes:
        """Make a change once; return its serialised response, also for a repeated request.

        Raises:
            ToolrunnerError: It is refused, or its outcome is unknown.
            FileRefused: It is refused, and nothing was changed.
        """

        async def act() -> bytes:
            changed = await self._changes.apply(scope, effect.request_id, plan, dry_run=dry_run)
            return encode(changed)

        self._workspaces.check(scope)
        self._workspaces.check_space(scope.workspace_id)
        return await self._idempotent_effects.run(effect, act)

    async def undo(
        self,
        effect: FileEffect,
        scope: Scope,
        undoing: UndoRequest,
        encode: Callable[[ChangeResult], bytes],
    ) -> bytes:
        """Undo a change once; return the serialised response.

        Raises:
            ToolrunnerError: It is refused, or its outcome is unknown.
            FileRefused: It is refused, and nothing was changed.
        """

        async def act() -> bytes:
            changed = await self._changes.undo(
                scope,
                effect.request_id,
                edit_request_id=undoing.edit_request_id,
                path=undoing.path,
                guards_git=undoing.guards_git,
            )
            return encode(changed)

        self._workspaces.check(scope)
        return await self._idempotent_effects.run(effect, act)

    async def act(
        self,
        effect: FileEffect,
        scope: Scope,
        request: MakeDirectory,
        encode: Callable[[Answer], bytes],
    ) -> bytes:
        """Execute a single-step request once; return the serialised response.

        Raises:
            ToolrunnerError: It is refused, or its outcome is unknown.
            FileRefused: It is refused, and nothing was changed.
        """

        async def act() -> bytes:
            try:
                answer = await self._file_workers.ask(scope.workspace_id, request)
                return encode(answer)
            except FileWorkerGone as error:
                raise OutcomeUnknown(effect.request_id) from error

        self._workspaces.check(scope)
        self._workspaces.check_space(scope.workspace_id)
        await self._changes.recover(scope.workspace_id)
        return await self._idempotent_effects.run(effect, act)

    async def end(self, workspace_id: WorkspaceId) -> None:
        """End the file worker of a workspace, if there is one."""
        await self._file_workers.end(workspace_id)

    async def once(
        self, effect: FileEffect, scope: Scope, act: Callable[[], Awaitable[bytes]]
    ) -> bytes:
        """Execute once, with no concurrent file changes; return the serialised response.

        Raises:
            ToolrunnerError: It is refused, or its outcome is unknown.
            FileRefused: It is refused, and nothing was changed.
        """

        async def alone() -> bytes:
            async with self._changes.alone(scope.workspace_id):
                return await act()

        self._workspaces.check(scope)
        return await self._idempotent_effects.run(effect, alone)

    async def stage(
        self, scope: Scope, start: StartUpload, chunks: AsyncIterator[bytes]
    ) -> PlanUpload:
        """Receive the bytes of a file; return the plan to move it to its path.

        Raises:
            FileRefused: It is refused, and no staged file is left.
            FileWorkerGone: The file worker exited; upload it again.
        """
        self._workspaces.check(scope)
        self._workspaces.check_space(scope.workspace_id)
        workspace_id = scope.workspace_id
        coming = patient(chunks, silence_s=SILENCE_S, clock=self._clock)
        try:
            with self._upload_slots.place(workspace_id):
                await self._file_workers.ask(workspace_id, start)
                async with aclosing(coming):
                    async for data in coming:
                        await self._file_workers.ask(workspace_id, UploadChunk(start.token, data))
        except TimeoutError as error:
            await self.unstage(scope, start)
            text = f"no bytes came for {SILENCE_S:g} s; upload it again"
            raise FileRefused(Reason.INVALID_REQUEST, text, field="chunk") from error
        except BaseException:
            await self.unstage(scope, start)
            raise
        return PlanUpload(start.token)

    async def unstage(self, scope: Scope, start: StartUpload) -> None:
        """Remove the staged file of an upload that was not committed."""
        with suppress(FileWorkerGone, FileRefused):
            await self._tasks.complete(self._unstage(scope, start), context=detached())

    async def _unstage(self, scope: Scope, start: StartUpload) -> None:
        await self._file_workers.ask(scope.workspace_id, DropUpload(start.token, start.path))
