"""Running programs in workspaces of a real spawner, as confined as a level says.

Some tests run this as another user too.
"""

import asyncio
import itertools
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from support.session.sandbox_levels import levels_of_tests
from support.toolrunner.worker_users import WORKER_USERS
from toolrunner.directories.workspaces import Workspace, Workspaces
from toolrunner.primitives.domain import NO_CHAT, UNLIMITED, Exit, Limits, ProcessId, WorkspaceId
from toolrunner.processes.node_sandbox import OWN_PROGRAMS, Sandbox, probe
from toolrunner.sandbox import Egress, Layer, Level, Network, Profile, judge
from toolrunner.spawner import descendants, running_processes
from toolrunner.spawner.client.environment import SEARCH_PATH, environment_of
from toolrunner.spawner.client.spawner import Launch, SpawnerProcess
from toolrunner.spawner.client.startup import running_spawner

WITHIN_S = 60.0
#: One that every user can run, if there is any.
PYTHON = shutil.which("python3", path=SEARCH_PATH) or sys.executable


@dataclass(frozen=True)
class Ran:
    """What a program said, how it ended and what confined it."""

    text: str
    exit: Exit
    layers: tuple[Layer, ...]


def sandbox_in(
    directory: Path,
    level: Level,
    without: tuple[Layer, ...] = (),
    *,
    is_closed: bool = False,
    minimum: Level | None = None,
) -> Sandbox:
    """Return the sandbox of this machine, held at a level, as if some layers did not work.

    With `is_closed`, users of workspaces are not able to walk to the directory. The minimum is the
    level itself unless another is given.
    """
    trials = probe(directory, WORKER_USERS.first)
    if without:
        failures = {**trials.failures, **dict.fromkeys(without, "left out by a test")}
        abi = 0 if Layer.LANDLOCK_FILES in without else trials.landlock_abi
        trials = replace(trials, failures=failures, landlock_abi=abi)
    if not is_closed and PYTHON.startswith("/usr/") and os.access(directory, os.X_OK):
        # The probe asks for the Python that runs this; here another one is run.
        trials = replace(trials, is_reachable=True)
    return Sandbox(judge(trials, minimum=minimum or level, forced=level), WORKER_USERS)


@dataclass
class Jail:
    """A spawner and its workspaces."""

    spawner: SpawnerProcess
    spawner_pid: int
    sandbox: Sandbox
    workspaces: Workspaces
    directory: Path
    numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    @classmethod
    @asynccontextmanager
    async def opened(
        cls,
        directory: Path,
        level: Level,
        without: tuple[Layer, ...] = (),
        *,
        is_closed: bool = False,
        has_groups: bool = True,
        minimum: Level | None = None,
    ) -> AsyncIterator["Jail"]:
        sandbox = sandbox_in(directory, level, without, is_closed=is_closed, minimum=minimum)
        places = directory / "workspaces"
        async with running_spawner(directory, adoption_s=0, has_groups=has_groups) as running:
            workspaces = Workspaces(places, sandbox.users(places))
            with levels_of_tests.held(level.word):
                yield cls(running.process, running.pid, sandbox, workspaces, directory)

    @property
    def level(self) -> Level:
        """The level that it is held at, whatever that counts as."""
        return self.sandbox.report.applied

    def workspace(self, name: str = "w1") -> Workspace:
        return self.workspaces.prepared(WorkspaceId(name))

    def put(self, path: str, content: str, workspace: str = "w1", mode: int = 0o644) -> Path:
        """Make a file that belongs to the workspace."""
        root = self.workspace(workspace).root
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)
        target.chmod(mode)
        owner = root.stat().st_uid
        for each in (target, *target.relative_to(root).parents):
            os.chown(root / each, owner, owner)
        return target

    def launch(
        self,
        *argv: str,
        workspace: str = "w1",
        profile: Profile = Profile.FULL,
        network: Network | None = None,
        egress: Egress | None = None,
        limits: Limits = UNLIMITED,
        variables: dict[str, str] | None = None,
    ) -> Launch:
        place = self.workspace(workspace)
        process_id = ProcessId(f"p{next(self.numbers)}")
        readable = () if PYTHON.startswith("/usr/") else OWN_PROGRAMS
        return Launch(
            process_id=process_id,
            workspace_id=WorkspaceId(workspace),
            argv=argv,
            root=place.root,
            workdir=".",
            environment=environment_of(
                process_id=process_id,
                chat_id=NO_CHAT,
                home=place.home,
                temporary=place.temporary,
                declared=variables or {},
            ),
            confinement=self.sandbox.confined(
                place,
                profile=profile,
                network=network,
                egress=egress,
                processes=limits.pids,
                readable=readable,
            ),
            limits=limits,
        )

    def users_below(self) -> list[int]:
        """Return the users of all processes that the spawner started."""
        below = descendants(self.spawner_pid, running_processes())
        return [os.stat(f"/proc/{each.pid}").st_uid for each in below]

    async def run(self, *argv: str, **given: object) -> Ran:
        """Run a program to its end, and return everything that it printed."""
        launch = self.launch(*argv, **given)  # type: ignore[arg-type]
        ended: asyncio.Future[Exit] = asyncio.get_running_loop().create_future()
        async with asyncio.timeout(WITHIN_S):
            launched = await self.spawner.start(launch, lambda _, exit: ended.set_result(exit))
            with os.fdopen(launched.output_fd, "rb") as output:
                data = await asyncio.to_thread(output.read)
            exit = await ended
        await self.spawner.forget(launch.process_id)
        return Ran(data.decode(errors="replace"), exit, launched.layers)

    async def shell(self, script: str, **given: object) -> Ran:
        """Run a script of the shell."""
        return await self.run("bash", "-c", script, **given)

    async def python(self, script: str, *arguments: str, **given: object) -> Ran:
        """Run a script of Python."""
        return await self.run(PYTHON, "-I", "-S", "-c", script, *arguments, **given)

    async def begin(self, *argv: str, **given: object) -> tuple[Launch, int]:
        """Start a program that goes on; return it and its pid. Nobody reads what it prints."""
        launch = self.launch(*argv, **given)  # type: ignore[arg-type]
        launched = await self.spawner.start(launch, lambda _, exit: None)
        launched.close()
        return launch, launched.pid

    async def stop(self, workspace: str = "w1", grace_s: float = 0.0) -> None:
        """End everything of a workspace."""
        place = self.workspace(workspace)
        await self.spawner.end_workspace(WorkspaceId(workspace), place.directory, grace_s)
