"""Whether this node can run commands: one is tried now and then, as confined as all others are.

Theory: the service answers health checks by itself, while commands are run by the spawner, in
namespaces and trees of files that it has to make. So a real command goes that whole way: with
namespaces of its own, which are ended afterwards, so that the next trial makes them anew. A trial
that takes too long is a failure and is waited for, so that there is never a second one beside it.
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
from toolrunner.directories.users import FIRST
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import SpawnerGone
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.sandbox import Confinement, Layer, NotEnforceable, Place, Profile, plan
from toolrunner.spawner.client.node_programs import ProgramFailed, Programs
from toolrunner.spawner.client.spawner import Spawner

logger = logging.getLogger(__name__)

#: Who runs the command, where there are users; no workspace ever gets this one.
CHECK_USER: Final = FIRST - 2
NAME: Final = WorkspaceId("command-check")
DIRECTORY: Final = "command-check"
PRIVATE: Final = 0o700
CHECK_S: Final = 10.0
#: How soon a failure is tried again.
AGAIN_S: Final = 1.0
LIMIT_S: Final = 10.0
#: When a trial that is late is given up, and another one begins.
GIVE_UP_S: Final = 60.0
#: So many failures in a row are told: on a busy machine one may be late.
FAILURES: Final = 2
NOT_TRIED: Final = "no command was tried yet"

OnChange = Callable[[bool, str], None]


@dataclass
class CommandCheck:
    """Tries a command again and again, and tells when that begins to fail or to work.

    Attributes:
        programs: Runs the command.
        spawner: Ends the namespaces of the trial.
        sandbox: Confines it.
        directory: The data of the node; the command gets a directory below it.
        on_change: Is told whether commands can be run, and why not.
    """

    programs: Programs
    spawner: Spawner
    sandbox: Sandbox
    directory: Path
    clock: Clock
    on_change: OnChange
    problem: str = NOT_TRIED
    _trial: "asyncio.Task[str] | None" = field(default=None, init=False)

    async def run(self) -> None:
        """Check for ever."""
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
            place = self._place()
            await self.programs.run(
                ("true",),
                workspace_id=NAME,
                directory=Path(place.root),
                environment={},
                limit_s=GIVE_UP_S,
                confinement=self._confinement(place),
            )
            await self.spawner.end_workspace(NAME, Path(place.root), 0.0, first=signal.SIGKILL)
        except ProgramFailed as error:
            return f"a command {error.cause}"
        except SpawnerGone:
            return "the program that starts commands ended"
        except OSError as error:
            return f"a command cannot be prepared: {error.strerror}"
        return ""

    def _place(self) -> Place:
        """Return where the command runs, made if it is not there yet."""
        directory = self.directory / DIRECTORY
        directory.mkdir(mode=PRIVATE, exist_ok=True)
        uid = CHECK_USER if Layer.UID in self.sandbox.report.layers else -1
        if uid >= 0 and directory.stat().st_uid != uid:
            os.chown(directory, uid, uid)
        return Place(str(directory), str(directory), str(directory), uid)

    def _confinement(self, place: Place) -> Confinement | None:
        """Return how the command is confined; None where this node has nothing that could."""
        try:
            return plan(self.sandbox.report, place=place, profile=Profile.FULL)
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
