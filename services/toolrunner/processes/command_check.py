"""A check whether this node can run commands: one is run periodically, confined like all others.

Theory: the service answers health checks by itself, while commands are run by the spawner, in
namespaces and mount trees that it has to create. So a real command is run: with namespaces of its
own, which are ended afterwards, so that the next check creates them again. Before it the journal is
written, without which no command of a user is begun. A check that takes too long is a failure and
is waited for, so that there is never a second one at the same time.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from parley.clock import Clock
from toolrunner.journal.thread import JournalThread
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import JournalFailed, SpawnerGone
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.sandbox import Confinement, Layer, NotEnforceable, Profile, SandboxPaths, plan
from toolrunner.spawner.client.node_programs import NodePrograms, ProgramFailed
from toolrunner.spawner.client.spawner import Spawner

logger = logging.getLogger(__name__)

NAME: Final = WorkspaceId("command-check")
DIRECTORY: Final = "command-check"
PRIVATE: Final = 0o700
CHECK_S: Final = 10.0
#: The delay after a failure.
AGAIN_S: Final = 1.0
LIMIT_S: Final = 10.0
#: When a late check is abandoned, and another one begins.
GIVE_UP_S: Final = 60.0
#: So many consecutive failures are reported: on a busy machine one may be late.
FAILURES: Final = 2
NOT_TRIED: Final = "no command was tried yet"

OnChange = Callable[[bool, str], None]


@dataclass
class CommandCheck:
    """Runs a command periodically, and reports when that begins to fail or to work.

    Attributes:
        programs: Runs the command.
        spawner: Ends the namespaces of the check.
        sandbox: Confines it.
        journal: Has to be writable.
        directory: The data of the node; the command gets a directory below it.
        on_change: Called with whether commands can be run, and the reason if not.
    """

    programs: NodePrograms
    spawner: Spawner
    sandbox: Sandbox
    journal: JournalThread
    directory: Path
    clock: Clock
    on_change: OnChange
    problem: str = NOT_TRIED
    _trial: "asyncio.Task[str] | None" = field(default=None, init=False)

    async def run(self) -> None:
        """Check periodically."""
        failures, self._trial = 0, None
        async with asyncio.TaskGroup() as tasks:
            while True:
                problem = await self._outcome(tasks)
                failures = failures + 1 if problem else 0
                if not problem or failures >= FAILURES:
                    self._tell(problem)
                await self.clock.sleep(AGAIN_S if problem else CHECK_S)

    async def _outcome(self, tasks: asyncio.TaskGroup) -> str:
        """Return why a command cannot be run; empty if it can."""
        if self._trial is None:
            self._trial = tasks.create_task(self._tried())
        done, _ = await asyncio.wait({self._trial}, timeout=LIMIT_S)
        if not done:
            return f"a command was not run within {LIMIT_S:g} s"
        trial, self._trial = self._trial, None
        return trial.result()

    async def _tried(self) -> str:
        try:
            await self.journal.run(lambda journal: journal.try_write())
            paths = self._place()
            await self.programs.run(
                ("true",),
                workspace_id=NAME,
                directory=Path(paths.root),
                environment={},
                limit_s=GIVE_UP_S,
                confinement=self._confinement(paths),
            )
            await self.spawner.end_workspace(NAME, Path(paths.root), 0.0, first=signal.SIGKILL)
        except JournalFailed as error:
            return str(error)
        except ProgramFailed as error:
            return f"a command {error.cause}"
        except SpawnerGone:
            return "the program that starts commands ended"
        except OSError as error:
            return f"a command cannot be prepared: {error.strerror}"
        return ""

    def _place(self) -> SandboxPaths:
        """Return the directories of the command, created if needed."""
        directory = self.directory / DIRECTORY
        directory.mkdir(mode=PRIVATE, exist_ok=True)
        has_users = Layer.UID in self.sandbox.report.layers
        uid = self.sandbox.user_range.command_check if has_users else -1
        if uid >= 0 and directory.stat().st_uid != uid:
            os.chown(directory, uid, uid)
        return SandboxPaths(str(directory), str(directory), str(directory), uid)

    def _confinement(self, paths: SandboxPaths) -> Confinement | None:
        """Return how the command is confined; None where this node cannot confine it."""
        try:
            return plan(self.sandbox.report, paths=paths, profile=Profile.FULL)
        except NotEnforceable:
            return None

    def _tell(self, problem: str) -> None:
        if problem == self.problem:
            return
        if problem:
            logger.error("this node cannot run commands: %s", problem)
        elif self.problem != NOT_TRIED:
            logger.info("this node can run commands again")
        self.problem = problem
        self.on_change(not problem, problem and f"commands cannot be run: {problem}")
