"""The sandbox of this node: probed at startup, with a plan for each process."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from toolrunner.directories.users import UserRange, Users
from toolrunner.directories.workspaces import Workspace
from toolrunner.primitives.errors import SandboxTooWeak
from toolrunner.sandbox import (
    Confinement,
    Egress,
    Layer,
    Level,
    Network,
    NotEnforceable,
    Profile,
    Report,
    SandboxPaths,
    Trials,
    judge,
    plan,
)

PROBE_S: Final = 30.0
SHARED_USER: Final = (
    "the files of this workspace belong to the user of the service, so a command could change the "
    "modes of the service's own files; give the directory to another user, or set "
    "TOOLRUNNER_SANDBOX_MINIMUM=none if you trust what runs in it"
)
_RUN: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); "
    "from toolrunner.sandbox.__main__ import main; main()"
)
SERVICES: Final = Path(__file__).parents[2]

#: Paths that the file worker needs: its Python, and its own code.
OWN_PROGRAMS: Final = tuple(
    dict.fromkeys((sys.prefix, sys.base_prefix, sys.exec_prefix, str(SERVICES)))
)


@dataclass(frozen=True, slots=True)
class Sandbox:
    """Confines the processes of this node.

    Attributes:
        report: The mechanisms of this machine.
        user_range: The users of this node, for its workspaces and its own programs.
    """

    report: Report
    user_range: UserRange

    def users(self, directory: Path) -> Users | None:
        """Return the allocator of workspace users, if workspaces can have their own."""
        if Layer.UID not in self.report.layers:
            return None
        return Users(directory, self.user_range)

    def confined(
        self,
        workspace: Workspace,
        *,
        profile: Profile | None,
        network: Network | None,
        processes: int = 0,
        egress: Egress | None = None,
        readable: tuple[str, ...] = (),
        may_watch: bool = False,
    ) -> Confinement:
        """Return how to confine a process of a workspace.

        Raises:
            SandboxTooWeak: The node cannot enforce the requested confinement, or not its own
                minimum because the files belong to the user of the service.
        """
        paths = SandboxPaths(
            root=str(workspace.root),
            home=str(workspace.home),
            temporary=str(workspace.temporary),
            uid=self._uid(workspace),
            readable=(str(workspace.logs), *readable),
            may_watch=may_watch,
        )
        try:
            found = plan(
                self.report,
                paths=paths,
                profile=profile,
                network=network,
                processes=processes,
                egress=egress,
            )
        except NotEnforceable as error:
            raise SandboxTooWeak(
                level=error.level.word,
                required=error.required.word,
                cause=f"{error.asked} cannot be kept below that",
            ) from error
        if found.level < self.report.minimum:
            raise SandboxTooWeak(
                level=found.level.word, required=self.report.minimum.word, cause=SHARED_USER
            )
        return found

    def _uid(self, workspace: Workspace) -> int:
        """Return the owner of the files; -1 for the user of the service."""
        with suppress(OSError):
            owner = os.stat(workspace.root).st_uid
            return -1 if owner == os.geteuid() else owner
        return -1


def find_sandbox(
    directory: Path, user_range: UserRange, *, minimum: Level, forced: Level | None
) -> Sandbox:
    """Probe the machine in a separate process, and judge the results.

    Args:
        directory: Where workspaces will be.
        user_range: The users of this node.
        minimum: The weakest level to accept.
        forced: A level not to exceed, for tests.

    Raises:
        BelowMinimum: The node offers less than the minimum.
    """
    trials = probe(directory, user_range.first)
    return Sandbox(judge(trials, minimum=minimum, forced=forced), user_range)


def probe(directory: Path, user: int) -> Trials:
    """Probe the machine; workspace users must be able to reach the directory and the Python."""
    ended = subprocess.run(
        [
            *(sys.executable, "-I", "-S", "-c", _RUN, str(SERVICES)),
            *(str(user), str(directory), os.path.realpath(sys.executable)),
        ],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={"PATH": os.defpath},
        timeout=PROBE_S,
        check=True,
    )
    return trials_of(json.loads(ended.stdout))


def trials_of(document: dict[str, Any]) -> Trials:
    """Decode the output of the probe."""
    failures = {Layer(int(layer)): why for layer, why in document["failures"].items()}
    fields: dict[str, Any] = {**document, "failures": failures}
    return Trials(**fields)
