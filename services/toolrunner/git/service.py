"""The git service of this node."""

import hashlib
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from types import TracebackType
from typing import Final

from parley.clock import Clock
from parley.tasks import BackgroundTasks, Supervision
from toolrunner.files.service import FileService
from toolrunner.fileworker.git import protocol
from toolrunner.git.watches import GitEvent, GitWatches
from toolrunner.journal.records import FileEffect
from toolrunner.primitives.domain import Scope
from toolrunner.primitives.errors import FileWorkerGone, OutcomeUnknown

#: Between the timeout of git and that of the file worker's response.
GRACE_S: Final = 10.0
#: The first checkpoint of a large tree takes long.
CHECKPOINT_S: Final = 300.0
#: The scope of checkpoints that belong to no chat.
OWNER_WITHOUT_CHAT: Final = "workspace"


def scope_name(scope: Scope) -> str:
    """Return the part of a reference that names the scope of a checkpoint."""
    return scope.chat_id or OWNER_WITHOUT_CHAT


def previous_label(request_id: str) -> str:
    """Return the label of the state before a restore; the same for a repeated request."""
    return f"before-{hashlib.sha256(request_id.encode()).hexdigest()[:16]}"


class GitService:
    """Reads repositories and manages checkpoints; owns the tasks that watch them."""

    def __init__(self, files: FileService, clock: Clock, supervision: Supervision) -> None:
        self._files = files
        self._tasks = BackgroundTasks(supervision)
        self._watches = GitWatches(files, clock, self._tasks)

    async def __aenter__(self) -> "GitService":
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop_waiting()
        await self._tasks.__aexit__(kind, error, traceback)

    def stop_waiting(self) -> None:
        """End all streams."""
        self._watches.stop()

    async def status(self, scope: Scope, request: protocol.GitStatus) -> protocol.Repositories:
        """Return repositories.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The file worker exited; retry.
        """
        if not request.directory and self._files.holds_no_repository(scope):
            return protocol.Repositories(())
        limit_s = request.timeout_s + GRACE_S
        return await self._files.ask(scope, request, protocol.Repositories, limit_s=limit_s)

    async def diff(self, scope: Scope, request: protocol.GitDiff) -> protocol.Diff:
        """Return a diff.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The file worker exited; retry.
        """
        limit_s = request.timeout_s + GRACE_S
        return await self._files.ask(scope, request, protocol.Diff, limit_s=limit_s)

    async def checkpoints(
        self, scope: Scope, request: protocol.ListCheckpoints
    ) -> protocol.Checkpoints:
        """Return a page of checkpoints.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The file worker exited; retry.
        """
        limit_s = request.timeout_s + GRACE_S
        return await self._files.ask(scope, request, protocol.Checkpoints, limit_s=limit_s)

    def watch(self, scope: Scope) -> AsyncGenerator[GitEvent, None]:
        """Yield all repositories of a workspace first, then those that change."""
        return self._watches.watch(scope)

    async def keep(
        self,
        effect: FileEffect,
        scope: Scope,
        request: protocol.CreateCheckpoint,
        encode: Callable[[protocol.Created], bytes],
    ) -> bytes:
        """Create a checkpoint once; return the serialised response.

        Raises:
            ToolrunnerError: It is refused.
            FileRefused: It is refused.
        """

        async def act() -> bytes:
            limit_s = request.timeout_s + GRACE_S
            return encode(await self._files.ask(scope, request, protocol.Created, limit_s=limit_s))

        return await self._files.once(effect, scope, act)

    async def restore(
        self,
        effect: FileEffect,
        scope: Scope,
        request: protocol.RestoreCheckpoint,
        encode: Callable[[protocol.Restored], bytes],
    ) -> bytes:
        """Restore files once; return the serialised response.

        If the file worker exits halfway, the request is sent once more to its successor, which
        continues.

        Raises:
            ToolrunnerError: It is refused, or its outcome is unknown.
            FileRefused: It is refused, and nothing was changed.
        """

        async def ask() -> bytes:
            limit_s = request.timeout_s + GRACE_S
            return encode(await self._files.ask(scope, request, protocol.Restored, limit_s=limit_s))

        async def act() -> bytes:
            with suppress(FileWorkerGone):
                return await ask()
            try:
                return await ask()
            except FileWorkerGone as error:
                raise OutcomeUnknown(effect.request_id) from error

        return await self._files.once(effect, scope, act)
