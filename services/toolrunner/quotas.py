"""Holding workspaces to their quotas where the kernel does not.

Theory: memory is bounded for each process by the kernel, and for a workspace by a control group
where there is one. Elsewhere all processes are looked at twice a second, more often when a
workspace is near its bound, and whoever has most of one that is past it is killed. A workspace
that computes without pause gets what nobody else wants of the processors. The disk has no bound
that could be set without the rights of its administrator; so what a workspace takes is measured,
and when it is too much everything that runs in it is ended.
"""

import asyncio
import logging
import signal
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from parley.clock import Clock
from toolrunner.census import (
    Census,
    Member,
    Members,
    hidden_bytes,
    make_idle,
    make_usual,
    proportional_bytes,
)
from toolrunner.disk_use import Space, Use, is_due, overrun, places
from toolrunner.domain import WorkspaceId
from toolrunner.errors import SpawnerGone
from toolrunner.files.beneath import Root
from toolrunner.hosting.programs import ProgramFailed, Programs
from toolrunner.live import MEMORY
from toolrunner.processes import Processes
from toolrunner.spawner import children_of, send
from toolrunner.spawning import Spawner
from toolrunner.trees import measure
from toolrunner.workspaces import Workspaces

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.5
#: When a workspace has used half of what it may.
LOOK_CLOSELY_S: Final = 0.1
#: Looking takes no more of the time than one part in so many, unless that would be too late.
SHARE: Final = 10
LOOK_LATEST_S: Final = 1.0
MEASURE_S: Final = 300.0
ENTRIES_MAX: Final = 10_000_000
NODE: Final = WorkspaceId("node")
PIDS: Final = "pids"
#: Between looking and counting a few end and begin.
PIDS_SPARE: Final = 4
FULL_LOOKS: Final = 3
#: Cores that a workspace keeps busy before it gives way, and below which it no longer does.
BUSY_CORES: Final = 0.5
CALM_CORES: Final = 0.1
CALM_S: Final = 3.0


@dataclass
class Pace:
    """How much of the processors a workspace uses.

    Attributes:
        used_s: What each of its processes had used, by pid.
        at_s: When.
        busy_s: When it was last busy.
        is_idle: Whether it was made to give way.
        full_looks: How often in a row it had as many processes as it may.
    """

    used_s: dict[int, float] = field(default_factory=dict)
    at_s: float = 0.0
    busy_s: float = 0.0
    is_idle: bool = False
    full_looks: int = 0

    def take(self, members: Iterable[Member], now_s: float) -> float:
        """Note what is used now; return the cores since it was last noted."""
        before, elapsed_s = self.used_s, now_s - self.at_s
        self.used_s, self.at_s = {each.seen.pid: each.cpu_s for each in members}, now_s
        if not before or elapsed_s <= 0:
            return 0.0
        grown_s = sum(max(0.0, used - before.get(pid, 0.0)) for pid, used in self.used_s.items())
        return grown_s / elapsed_s


@dataclass
class Quotas:
    """Looks at the workspaces of a node; owned by whoever runs it."""

    processes: Processes
    spawner: Spawner
    workspaces: Workspaces
    census: Census
    programs: Programs
    directory: Path
    clock: Clock
    _uses: dict[WorkspaceId, Use] = field(default_factory=dict)
    _paces: dict[WorkspaceId, Pace] = field(default_factory=dict)

    async def run(self) -> None:
        """Look for ever."""
        pause_s = LOOK_S
        while True:
            await self.clock.sleep(pause_s)
            started_s = self.clock.monotonic()
            try:
                is_close = await self.look()
            except OSError as error:
                logger.warning("workspaces could not be looked at: %s", error)
                is_close = False
            except SpawnerGone:
                return
            took_s = self.clock.monotonic() - started_s
            usual_s = LOOK_CLOSELY_S if is_close else LOOK_S
            pause_s = max(usual_s, min(SHARE * took_s, LOOK_LATEST_S))

    async def look(self) -> bool:
        """Look once; return whether to look again very soon."""
        leaders = self.processes.leaders()
        is_deserted = not leaders and not children_of(self.census.spawner_pid)
        members = {} if is_deserted else await asyncio.to_thread(self.census.take, leaders)
        is_close = await self._bound_processes(members)
        for workspace_id, each in members.items():
            is_close |= await asyncio.to_thread(self._bound_memory, workspace_id, each)
        await self._share(members)
        await self._bound_disk(members)
        return is_close

    def _bound_memory(self, workspace_id: WorkspaceId, members: tuple[Member, ...]) -> bool:
        """Kill whoever has most until the rest keeps the bound; return whether it is near."""
        bound = self.workspaces.quota_of(workspace_id).memory_bytes
        if not bound:
            return False
        # Most of the time there is hardly any on the whole machine.
        hidden = hidden_bytes(members) if _shared_bytes() > bound // 4 else {}
        total = sum(each.resident_bytes for each in members) + sum(hidden.values())
        if total <= bound:
            return total > bound // 2
        sizes = {
            each.seen.pid: proportional_bytes(each) + hidden.get(each.seen.pid, 0)
            for each in members
        }
        total = sum(sizes.values())
        for member in sorted(members, key=lambda each: sizes[each.seen.pid], reverse=True):
            if total <= bound:
                break
            if member.process_id:
                self.processes.blame(member.process_id, MEMORY)
            if send(member.seen, signal.SIGKILL):
                total -= sizes[member.seen.pid]
                logger.warning(
                    "a process was killed: its workspace used more memory than it may",
                    extra={"workspace_id": workspace_id, "process_id": member.process_id},
                )
        return True

    async def _bound_processes(self, members: Members) -> bool:
        """End who has had as many processes as it may for a while; return whether one has.

        The kernel refuses it to have more; but trying takes locks that everybody needs who starts
        something.
        """
        is_close = False
        for workspace_id, own in members.items():
            bound = self.workspaces.quota_of(workspace_id).pids
            pace = self._paces.setdefault(workspace_id, Pace())
            is_full = bool(bound) and len(own) >= bound - PIDS_SPARE
            pace.full_looks = pace.full_looks + 1 if is_full else 0
            is_close |= is_full
            if pace.full_looks >= FULL_LOOKS:
                await self._end(workspace_id, PIDS, members)
        return is_close

    async def _share(self, members: Members) -> None:
        """Let those give way who compute without pause."""
        now_s = self.clock.monotonic()
        for workspace_id in [each for each in self._paces if each not in members]:
            del self._paces[workspace_id]
        for workspace_id, own in members.items():
            pace = self._paces.setdefault(workspace_id, Pace())
            cores = pace.take(own, now_s)
            was_idle = pace.is_idle
            if cores >= BUSY_CORES:
                pace.busy_s, pace.is_idle = now_s, True
            elif cores < CALM_CORES and now_s - pace.busy_s >= CALM_S:
                pace.is_idle = False
            if pace.is_idle != was_idle:
                await self.spawner.give_way(workspace_id, is_idle=pace.is_idle)
            if pace.is_idle or was_idle:
                await asyncio.to_thread(_schedule, own, is_idle=pace.is_idle)

    async def _bound_disk(self, members: Members) -> None:
        space = Space.of(self.directory)
        for workspace_id in {*members, *self.workspaces.overruns}:
            quota = self.workspaces.quota_of(workspace_id)
            if not self.workspaces.at(workspace_id).directory.is_dir():
                self.forget(workspace_id)
                continue
            before = self._uses.get(workspace_id)
            if not is_due(before, quota, space, self.clock.monotonic()):
                continue
            use = await self._measured(workspace_id, space)
            self._uses[workspace_id] = use
            problem = overrun(use, quota)
            if problem is None:
                self.workspaces.overruns.pop(workspace_id, None)
                continue
            known = self.workspaces.overruns.get(workspace_id)
            self.workspaces.overruns[workspace_id] = problem
            # Whoever removes files may go on, however much there is left to remove.
            if known is None or problem.used > known.used:
                await self._end(workspace_id, problem.dimension, members)

    async def _end(self, workspace_id: WorkspaceId, dimension: str, members: Members) -> None:
        logger.warning(
            "everything in a workspace is ended: it uses more than it may",
            extra={"workspace_id": workspace_id, "dimension": dimension},
        )
        for process_id in {each.process_id for each in members.get(workspace_id, ())} - {""}:
            self.processes.blame(process_id, dimension)
        await self.processes.end_workspace(workspace_id, 0.0, first=signal.SIGKILL)

    def forget(self, workspace_id: WorkspaceId) -> None:
        """Know nothing of a workspace any more."""
        self._uses.pop(workspace_id, None)
        self.workspaces.overruns.pop(workspace_id, None)

    async def _measured(self, workspace_id: WorkspaceId, space: Space) -> Use:
        started_s = self.clock.monotonic()
        paths = places(self.workspaces.at(workspace_id))
        try:
            disk_bytes = await self._total(paths, "--block-size=1")
            inodes = await self._total(paths, "--inodes")
        except (ProgramFailed, ValueError):
            disk_bytes, inodes = await asyncio.to_thread(_walked, paths)
        now_s = self.clock.monotonic()
        return Use(disk_bytes, inodes, space, now_s, now_s - started_s)

    async def _total(self, paths: tuple[Path, ...], kind: str) -> int:
        """Have a program of the machine add up, which is many times as fast as we are."""
        told = await self.programs.run(
            ("du", "--summarize", "--total", "--one-file-system", kind, "--", *map(str, paths)),
            workspace_id=NODE,
            directory=self.directory,
            environment={"LC_ALL": "C"},
            limit_s=MEASURE_S,
        )
        return int(told[-1].split()[0])


def _schedule(members: Iterable[Member], *, is_idle: bool) -> None:
    for each in members:
        if is_idle:
            make_idle(each)
        else:
            make_usual(each)


def _shared_bytes() -> int:
    """Return the memory of the machine that may be no process's."""
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("Shmem:"):
                return int(line.split()[1]) * 1024
    return 0


def _walked(paths: tuple[Path, ...]) -> tuple[int, int]:
    disk_bytes = inodes = 0
    for path in paths:
        root = Root.open_directory(str(path))
        try:
            found = measure(root, entries_max=ENTRIES_MAX)
        finally:
            root.close()
        disk_bytes, inodes = disk_bytes + found[0], inodes + found[1]
    return disk_bytes, inodes
