"""The pool of file workers: one for each workspace, from its first use until it is idle."""

import asyncio
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from parley.clock import Clock
from parley.rpc import detached
from parley.settings import ConfigurationError
from parley.tasks import Shielding
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.worker_channel import ANSWER_S, FileWorkerChannel
from toolrunner.fileworker.protocol import Answer, Request
from toolrunner.primitives.domain import Exit, ProcessId, WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone
from toolrunner.processes.node_sandbox import OWN_PROGRAMS, Sandbox
from toolrunner.sandbox import Profile
from toolrunner.spawner import PROCESS_MARK
from toolrunner.spawner.client.environment import SEARCH_PATH
from toolrunner.spawner.client.spawner import Launch, LaunchFailed, Spawner

IDLE_S: Final = 300.0
#: The directory of Python comes first: ripgrep is installed with the other requirements.
RIPGREP_PATH: Final = f"{Path(sys.executable).parent}:{SEARCH_PATH}"


def find_ripgrep(search_path: str = RIPGREP_PATH) -> str:
    """Return the path of ripgrep.

    Raises:
        ConfigurationError: There is none.
    """
    found = shutil.which("rg", path=search_path)
    if found is None:
        raise ConfigurationError(f"no ripgrep (rg) in {search_path}; install requirements.lock")
    return found


def find_git() -> str:
    """Return the path of git; empty if the machine has none."""
    return shutil.which("git", path=SEARCH_PATH) or ""


@dataclass
class _PooledWorker:
    """The file worker of one workspace, if it runs."""

    process_id: ProcessId | None = None
    channel: FileWorkerChannel | None = None
    starting: asyncio.Lock = field(default_factory=asyncio.Lock)
    used_s: float = 0.0
    wanted: int = 0  # The number of current users.

    @property
    def is_busy(self) -> bool:
        """Whether a caller waits for an answer, or for the worker to be started or ended."""
        return self.wanted > 0 or (self.channel is not None and self.channel.is_busy)


class FileWorkerPool:
    """Starts file workers when they are needed, and ends idle ones."""

    def __init__(
        self,
        *,
        spawner: Spawner,
        workspaces: Workspaces,
        sandbox: Sandbox,
        clock: Clock,
        new_id: Callable[[], str],
        ripgrep: str,
        tasks: Shielding,
        git: str = "",
    ) -> None:
        self._spawner = spawner
        self._workspaces = workspaces
        self._sandbox = sandbox
        self._clock = clock
        self._new_id = new_id
        self._ripgrep = ripgrep
        self._tasks = tasks
        self._git = git
        self._pooled: dict[WorkspaceId, _PooledWorker] = {}

    async def ask(
        self, workspace_id: WorkspaceId, request: Request, *, limit_s: float = ANSWER_S
    ) -> Answer:
        """Return the answer to a request with a single answer.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The worker exited, or took too long and was ended.
        """
        async with self._channel(workspace_id) as channel:
            return await channel.ask(request, limit_s=limit_s)

    async def stream(
        self, workspace_id: WorkspaceId, request: Request, *, limit_s: float = ANSWER_S
    ) -> AsyncGenerator[Answer, None]:
        """Yield the answers to a request; few are produced ahead of the consumer.

        Raises:
            FileRefused: It is refused.
            FileWorkerGone: The worker exited, or took too long and was ended.
        """
        async with (
            self._channel(workspace_id) as channel,
            aclosing(channel.stream(request, limit_s=limit_s)) as answers,
        ):
            async for answer in answers:
                yield answer

    def process_of(self, workspace_id: WorkspaceId) -> str:
        """Return the process mark of the worker of a workspace; empty if none runs."""
        pooled = self._pooled.get(workspace_id)
        return "" if pooled is None else pooled.process_id or ""

    async def end(self, workspace_id: WorkspaceId) -> None:
        """End the worker of a workspace, if there is one, and drop its entry."""
        pooled = self._pooled.get(workspace_id)
        if pooled is not None:
            async with pooled.starting:
                await self._leave(pooled)
            if not pooled.is_busy and self._pooled.get(workspace_id) is pooled:
                del self._pooled[workspace_id]

    async def end_idle(self) -> AsyncGenerator[WorkspaceId, None]:
        """End workers that had no request for a while; yields their workspaces."""
        while True:
            await self._clock.sleep(IDLE_S / 2)
            before_s = self._clock.monotonic() - IDLE_S
            for workspace_id, pooled in list(self._pooled.items()):
                if pooled.used_s <= before_s and not pooled.is_busy:
                    await self.end(workspace_id)
                    yield workspace_id

    def close(self) -> None:
        """Close all channels, whereupon the workers exit."""
        for pooled in self._pooled.values():
            if pooled.channel is not None:
                pooled.channel.close()

    @asynccontextmanager
    async def _channel(self, workspace_id: WorkspaceId) -> AsyncIterator[FileWorkerChannel]:
        pooled = self._pooled.setdefault(workspace_id, _PooledWorker())
        pooled.wanted += 1
        try:
            channel = pooled.channel
            if channel is None or channel.gone.is_set() or pooled.starting.locked():
                # In a separate task: a cancelled caller must not leave an untracked worker behind.
                pooled.wanted += 1
                channel = await self._tasks.complete(
                    self._opened(pooled, workspace_id), context=detached()
                )
            try:
                yield channel
            except FileWorkerGone as error:
                if not error.is_replaced:
                    # It may be alive and busy; no other request shall wait for it.
                    channel.close()
                    channel.gone.set()
                raise
        finally:
            pooled.wanted -= 1
            pooled.used_s = self._clock.monotonic()

    async def _opened(self, pooled: _PooledWorker, workspace_id: WorkspaceId) -> FileWorkerChannel:
        try:
            async with pooled.starting:
                if pooled.channel is None or pooled.channel.gone.is_set():
                    await self._leave(pooled)
                    await self._start(pooled, workspace_id)
                assert pooled.channel is not None, "it was just started"
                return pooled.channel
        finally:
            pooled.wanted -= 1
            pooled.used_s = self._clock.monotonic()

    async def _leave(self, pooled: _PooledWorker) -> None:
        """Ensure that the last worker and its children are gone: there are never two."""
        if pooled.channel is not None:
            pooled.channel.close()
        if pooled.process_id is not None:
            await self._spawner.end(pooled.process_id, 0.0, first=signal.SIGKILL)
        pooled.channel = pooled.process_id = None

    async def _start(self, pooled: _PooledWorker, workspace_id: WorkspaceId) -> None:
        workspace = self._workspaces.prepared(workspace_id)
        process_id = ProcessId(self._new_id())
        launch = Launch(
            process_id=process_id,
            workspace_id=workspace_id,
            argv=(
                sys.executable,
                *("-I", "-m", "toolrunner.fileworker"),
                str(workspace.root),
                self._ripgrep,
                self._git,
                str(workspace.temporary),
                str(workspace.home),
            ),
            root=workspace.root,
            workdir=".",
            environment={"PATH": SEARCH_PATH, "LANG": "C.UTF-8", PROCESS_MARK: process_id},
            has_input=True,
            # Each request states whether it may write; the worker itself may write the whole
            # workspace.
            confinement=self._sandbox.confined(
                workspace,
                profile=Profile.FULL,
                network=None,
                readable=(*OWN_PROGRAMS, *workspace.options.readable),
                # It watches repositories, and runs no programs of the workspace.
                may_watch=True,
            ),
            owner_id=workspace.options.owner_id,
        )
        # Set before it runs, so that it is ended in any case.
        pooled.process_id = process_id
        try:
            launched = await self._spawner.start(launch, _ignored)
        except LaunchFailed as error:
            pooled.process_id = None
            await self._spawner.forget(process_id)
            raise FileWorkerGone(f"it cannot be started: {error}") from error
        pooled.channel = await FileWorkerChannel.opened(launched.output_fd, launched.input_fd)
        # It exits with this service, so there is nothing to keep for adoption.
        await self._spawner.forget(process_id)


def _ignored(process_id: ProcessId, exit: Exit) -> None:
    """Ignore the exit: it is detected by its output."""
