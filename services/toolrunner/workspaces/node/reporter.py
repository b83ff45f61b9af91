"""The reporter: facts, capacity, load and hosted workspaces of this node, for placement."""

import asyncio
import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from parley.clock import Clock
from toolrunner.directories.workspaces import Workspace, Workspaces
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.disk_usage import walked
from toolrunner.filesystem.tree import measure
from toolrunner.primitives.domain import Quota, WorkspaceId
from toolrunner.processes.node_sandbox import Sandbox
from toolrunner.processes.service import Processes
from toolrunner.workspaces.domain.placement import LIVE, Hosted, HostState, Usage
from toolrunner.workspaces.domain.spec import LocalDirectory
from toolrunner.workspaces.host import Host
from toolrunner.workspaces.sources.mirrors import Mirrors

#: The interval at which a workspace in use is measured.
MEASURE_S: Final = 60.0
ENTRIES_MAX: Final = 1_000_000
MILLI: Final = 1000
PROBLEM_MAX: Final = 500


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Values that do not change while the node runs."""

    node_id: str
    name: str
    address: str
    version: str
    journal_generation: str
    workspaces_max: int
    labels: tuple[tuple[str, str], ...] = ()
    directories: tuple[LocalDirectory, ...] = ()
    has_overlays: bool = False


@dataclass(frozen=True, slots=True)
class Capacity:
    """The capacity of the node."""

    workspaces: int
    cpu_millicores: int
    memory_bytes: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class Load:
    """The current load of the node.

    Attributes:
        problem: Why it cannot run commands; empty if it can.
    """

    workspaces: int
    processes: int
    cpu_millicores: int
    memory_bytes: int
    disk_free_bytes: int
    problem: str


@dataclass
class Reporter:
    """Reports the node's load; measures the files of workspaces in use, one after another."""

    facts: NodeFacts
    host: Host
    processes: Processes
    workspaces: Workspaces
    mirrors: Mirrors
    sandbox: Sandbox
    clock: Clock
    directory: Path
    read_text: Callable[[Path], str] = Path.read_text
    _problem: str = ""
    _usage: dict[WorkspaceId, Usage] = field(default_factory=dict)
    _busy_before: tuple[float, float] = (0.0, 0.0)

    def hosted(self) -> tuple[Hosted, ...]:
        """Return every workspace of this node, in the order of their ids."""
        running = self.processes.running()
        return tuple(
            Hosted(
                placement.workspace_id,
                placement.epoch,
                placement.state,
                self._usage.get(placement.workspace_id),
                running[placement.workspace_id],
                self.workspaces.attachments[placement.workspace_id],
                self.workspaces.waits[placement.workspace_id],
                last_used_at=self.host.used_at.get(placement.workspace_id),
                failure=placement.failure,
            )
            for _, placement in sorted(self.host.placements.items())
            if placement.state is not HostState.REMOVED
        )

    def capacity(self) -> Capacity:
        """Return the capacity of the node."""
        disk = os.statvfs(self.directory)
        return Capacity(
            self.facts.workspaces_max,
            len(os.sched_getaffinity(0)) * MILLI,
            self._memory("MemTotal"),
            disk.f_blocks * disk.f_frsize,
        )

    def load(self) -> Load:
        """Return the current load of the node; CPU use is the average since the last call."""
        disk = os.statvfs(self.directory)
        return Load(
            sum(each.state in LIVE for each in self.host.placements.values()),
            self.processes.running().total(),
            self._cpu_millicores(),
            self._memory("MemTotal") - self._memory("MemAvailable"),
            disk.f_bavail * disk.f_frsize,
            self._problem,
        )

    def set_problem(self, problem: str) -> None:
        """Report at once why commands cannot be run, or with an empty text that they can."""
        problem = problem[:PROBLEM_MAX]
        if problem != self._problem:
            self._problem = problem
            self.host.changed.set()

    async def measure(self) -> None:
        """Measure the files of workspaces that are in use; runs until cancelled."""
        while True:
            for workspace_id, placement in tuple(self.host.placements.items()):
                if placement.state is HostState.REMOVED:
                    self._usage.pop(workspace_id, None)
                elif self._is_due(workspace_id):
                    await self._measure(workspace_id)
            await self.clock.sleep(MEASURE_S)

    async def _measure(self, workspace_id: WorkspaceId) -> None:
        try:
            disk_bytes, inodes = await asyncio.to_thread(self._measured, workspace_id)
        except OSError:
            # It may just be created or removed.
            return
        self._usage[workspace_id] = Usage(disk_bytes, inodes, self.clock.now())

    def _measured(self, workspace_id: WorkspaceId) -> tuple[int, int]:
        workspace = self.workspaces.at(workspace_id)
        return used_by(workspace, self.workspaces.quota_of(workspace_id))

    def _is_due(self, workspace_id: WorkspaceId) -> bool:
        """Return whether a workspace may have changed since it was measured."""
        before = self._usage.get(workspace_id)
        if before is None or self.processes.running()[workspace_id]:
            return True
        used_at = self.host.used_at.get(workspace_id)
        return used_at is not None and used_at > before.measured_at

    def _memory(self, name: str) -> int:
        for line in self.read_text(Path("/proc/meminfo")).splitlines():
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) * 1024
        return 0

    def _cpu_millicores(self) -> int:
        times = [
            int(word) for word in self.read_text(Path("/proc/stat")).split("\n")[0].split()[1:]
        ]
        ticks_s = os.sysconf("SC_CLK_TCK")
        busy_s = (sum(times[:8]) - times[3] - times[4]) / ticks_s
        now_s = self.clock.monotonic()
        (before_s, busy_before_s), self._busy_before = self._busy_before, (now_s, busy_s)
        if not before_s or now_s <= before_s:
            return 0
        return max(0, round((busy_s - busy_before_s) / (now_s - before_s) * MILLI))


def used_by(workspace: Workspace, quota: Quota) -> tuple[int, int]:
    """Return the bytes on disk and the number of files and directories of a workspace.

    What cannot be read counts as all that the workspace may have; but in a registered directory or
    a mount, which quotas leave out too, it does not count, and modes are not changed to read it.

    Raises:
        OSError: It does not exist.
    """
    root = str(workspace.root)
    os.stat(root)
    if workspace.options.files is not None or os.path.ismount(root):
        with closing(Root.open_directory(root)) as directory:
            return measure(directory, entries_max=ENTRIES_MAX)
    found = walked((root,), entries_max=ENTRIES_MAX)
    if not found.unread:
        return found.disk_bytes, found.inodes
    return max(found.disk_bytes, quota.disk_bytes), max(found.inodes, quota.inodes)
