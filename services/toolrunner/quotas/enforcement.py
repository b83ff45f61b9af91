"""Enforcement of the quotas of workspaces where the kernel does not enforce them.

Theory: memory is limited for each process by the kernel, and for a workspace by a control group
where available. Elsewhere all processes are scanned twice a second, more often when a workspace is
near its limit, and the largest processes of a workspace that exceeds it are killed. A workspace
that uses the CPU continuously gets the lowest priority. Disk quotas of the file system need
administrator rights; so the usage of a workspace is measured, and when it is too high all its
processes are killed.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from parley.clock import Clock
from toolrunner.directories.workspaces import Workspace, Workspaces
from toolrunner.filesystem.disk_usage import Walked, walked
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import SpawnerGone
from toolrunner.primitives.threads import OwnThreads
from toolrunner.processes.live_process import MEMORY
from toolrunner.processes.scan import (
    PIPE_BYTES,
    Member,
    Members,
    ProcessScan,
    descriptors_max,
    proportional_bytes,
    unmapped_by,
)
from toolrunner.processes.service import Processes
from toolrunner.quotas.cpu_priority import CpuPriorities
from toolrunner.quotas.deleted_files import DeletedFiles, held_by
from toolrunner.quotas.disk import Space, Use, devices, is_due, overrun, places
from toolrunner.quotas.socket_memory import SocketMemory
from toolrunner.sandbox import SocketUse, tasks_now
from toolrunner.spawner import children_of, send
from toolrunner.spawner.client.node_programs import NodePrograms, ProgramFailed

T = TypeVar("T")

logger = logging.getLogger(__name__)

LOOK_S: Final = 0.5
#: When a workspace uses more than half of its limit.
LOOK_CLOSELY_S: Final = 0.1
#: How soon it is noticed that many tasks are started, or that much of the disk is used, and how
#: many and how much that is.
GLANCE_S: Final = 0.1
RUSH: Final = 32
RUSH_BYTES: Final = 64 * 1024**2
#: Scanning takes at most 1/SHARE of the time, unless that would be too late.
SHARE: Final = 10
#: The same while many tasks are started or much is written: 1/SHARE_RUSH.
SHARE_RUSH: Final = 3
LOOK_LATEST_S: Final = 1.0
MEASURE_S: Final = 300.0
ENTRIES_MAX: Final = 10_000_000
NODE: Final = WorkspaceId("node")
PIDS: Final = "pids"
#: Between scan and check a few processes exit and start.
PIDS_SPARE: Final = 4
FULL_LOOKS: Final = 3
#: Descriptors in flight at so many scans in a row are kept there on purpose.
IN_FLIGHT_LOOKS: Final = 3


@dataclass
class Quotas:
    """Enforces the quotas of the workspaces of a node; its owner runs it."""

    processes: Processes
    workspaces: Workspaces
    scan: ProcessScan
    programs: NodePrograms
    shares: CpuPriorities
    sockets: SocketMemory
    directory: Path
    clock: Clock
    space: Callable[[Path], Space] = Space.of
    #: Quotas are enforced whatever other work holds the threads of this process.
    thread: OwnThreads = field(default_factory=partial(OwnThreads, "quotas"))
    _uses: dict[WorkspaceId, Use] = field(default_factory=dict)
    _full: dict[WorkspaceId, int] = field(default_factory=dict)
    #: For each socket the number of consecutive scans with descriptors in flight.
    _in_flight: dict[WorkspaceId, dict[int, int]] = field(default_factory=dict)
    #: Ended, and not measured since: what was measured while their processes wrote is too little.
    _ended: set[WorkspaceId] = field(default_factory=set)
    _is_deserted: bool = False
    _is_over: bool = False
    #: The processes at the last scan.
    _members: Members = field(default_factory=dict)

    async def run(self) -> None:
        """Check periodically, until the spawner exits."""
        pause_s, took_s = LOOK_S, 0.0
        async with asyncio.TaskGroup() as tasks:
            measuring: asyncio.Task[None] | None = None
            while not self._is_over:
                await self._rest(pause_s, SHARE_RUSH * took_s)
                started_s = self.clock.monotonic()
                is_close = await self._attempted(self._look_at_processes()) or False
                took_s = self.clock.monotonic() - started_s
                # Not awaited: a workspace may use up processes and memory while one is measured.
                if measuring is None or measuring.done():
                    measuring = tasks.create_task(self._attempted(self._bound_disk()))
                usual_s = LOOK_CLOSELY_S if is_close else LOOK_S
                # A workspace that is about to be ended is not spared because it slows down the
                # scan.
                is_urgent = any(self._full.values())
                pause_s = usual_s if is_urgent else max(usual_s, min(SHARE * took_s, LOOK_LATEST_S))

    async def _attempted(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Return the result of work, None if it failed; without a spawner all is over."""
        try:
            return await work
        except OSError as error:
            logger.warning("workspaces could not be looked at: %s", error)
        except SpawnerGone:
            self._is_over = True
        return None

    async def _rest(self, pause_s: float, least_s: float) -> None:
        """Sleep, but only until many tasks were started at once, or much was written."""
        began_s, tasks, free_bytes = self.clock.monotonic(), tasks_now(), self._free_bytes()
        while (left_s := began_s + pause_s - self.clock.monotonic()) > 0:
            await self.clock.sleep(left_s if self._is_deserted else min(left_s, GLANCE_S))
            is_rested = self.clock.monotonic() - began_s >= least_s
            if not is_rested:
                continue
            if tasks_now() - tasks >= RUSH or free_bytes - self._free_bytes() >= RUSH_BYTES:
                return

    def _free_bytes(self) -> int:
        with suppress(OSError):
            return self.space(self.directory).free_bytes
        return 0

    async def look(self) -> bool:
        """Check once; return whether to check again very soon."""
        is_close = await self._look_at_processes()
        await self._bound_disk()
        return is_close

    async def _look_at_processes(self) -> bool:
        leaders = self.processes.leaders()
        self._is_deserted = not leaders and not children_of(self.scan.spawner_pid)
        members = {} if self._is_deserted else await self.thread.run(self.scan.take, leaders)
        self._members = members
        is_close = await self._bound_processes(members)
        if members:
            sockets = await self.sockets.take(members)
            is_close |= await self.thread.run(self._bound_memories, members, sockets)
        await self.shares.look(members)
        return is_close

    def _bound_memories(self, members: Members, sockets: Mapping[WorkspaceId, SocketUse]) -> bool:
        """Enforce the memory limits of all workspaces; return whether one is near its limit."""
        shared_bytes = _shared_bytes()
        # A list, so that all are checked and not only up to the first that is near.
        near = [
            self._bound_memory(each, own, shared_bytes, sockets.get(each, SocketUse()))
            for each, own in members.items()
        ]
        return any(near)

    def _bound_memory(
        self,
        workspace_id: WorkspaceId,
        members: tuple[Member, ...],
        shared_bytes: int,
        sockets: SocketUse,
    ) -> bool:
        """Kill the largest processes until the rest fits; return whether the limit is near."""
        bound = self.workspaces.quota_of(workspace_id).memory_bytes
        if not bound:
            return False
        may_hide = _may_hide(members, shared_bytes, sockets, bound)
        hidden = hidden_bytes(members, sockets) if may_hide else {}
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
        """End workspaces that stayed at their process limit; return whether one is at the limit.

        The kernel refuses further processes; but the attempts take locks that every fork needs. One
        that was ended for that before is ended as soon as it is there again.
        """
        is_close, now_s = False, self.clock.monotonic()
        delays = self.workspaces.restart_delays
        for workspace_id, own in members.items():
            bound = self.workspaces.quota_of(workspace_id).pids
            is_full = bool(bound) and len(own) >= bound - PIDS_SPARE
            self._full[workspace_id] = self._full.get(workspace_id, 0) + 1 if is_full else 0
            is_close |= is_full
            looks_max = 1 if delays.was_ended(workspace_id, now_s) else FULL_LOOKS
            if self._full[workspace_id] >= looks_max:
                owner_id = self.workspaces.at(workspace_id).options.owner_id
                delays.note(workspace_id, owner_id, self.clock.monotonic())
                await self._end(workspace_id, PIDS)
        return is_close

    async def _bound_disk(self) -> None:
        space = self.space(self.directory)
        for workspace_id in {*self._members, *self.workspaces.overruns}:
            try:
                await self._bound_disk_of(workspace_id, space)
            except OSError as error:
                # One that was removed, or cannot be read, does not affect the others.
                logger.warning(
                    "what a workspace takes of the disk could not be measured: %s",
                    error,
                    extra={"workspace_id": workspace_id},
                )

    async def _bound_disk_of(self, workspace_id: WorkspaceId, space: Space) -> None:
        quota = self.workspaces.quota_of(workspace_id)
        if _is_gone(self.workspaces.at(workspace_id).directory):
            self.forget(workspace_id)
            return
        before = self._uses.get(workspace_id)
        if not is_due(before, quota, space, self.clock.monotonic()):
            return
        use = await self._measured(workspace_id, space)
        self._uses[workspace_id] = use
        problem = overrun(use, quota)
        if problem is None and self._in_flight.get(workspace_id):
            # Measured again at once: the files of descriptors in flight are not counted.
            del self._uses[workspace_id]
        if problem is None:
            self.workspaces.overruns.pop(workspace_id, None)
            self._ended.discard(workspace_id)
            return
        known = self.workspaces.overruns.get(workspace_id)
        self.workspaces.overruns[workspace_id] = problem
        is_first = workspace_id in self._ended
        self._ended.discard(workspace_id)
        # A command that removes files may continue, however much is left to remove.
        if known is None or (problem.used > known.used and not is_first):
            await self._end(workspace_id, problem.dimension)
            self._ended.add(workspace_id)

    async def _end(self, workspace_id: WorkspaceId, dimension: str) -> None:
        logger.warning(
            "everything in a workspace is ended: it uses more than it may",
            extra={"workspace_id": workspace_id, "dimension": dimension},
        )
        # Those of now: a measurement takes a while, and commands may have started meanwhile.
        leaders = self.processes.leaders().values()
        running = {each.process_id for each in leaders if each.workspace_id == workspace_id}
        known = {each.process_id for each in self._members.get(workspace_id, ())} - {""}
        for process_id in running | known:
            self.processes.blame(process_id, dimension)
        await self.processes.end_workspace(workspace_id, 0.0, first=signal.SIGKILL)

    def forget(self, workspace_id: WorkspaceId) -> None:
        """Drop the state of a workspace."""
        self._uses.pop(workspace_id, None)
        self._full.pop(workspace_id, None)
        self._in_flight.pop(workspace_id, None)
        self._ended.discard(workspace_id)
        self.workspaces.overruns.pop(workspace_id, None)

    async def _measured(self, workspace_id: WorkspaceId, space: Space) -> Use:
        started_s = self.clock.monotonic()
        workspace = self.workspaces.at(workspace_id)
        try:
            paths = await self.thread.run(places, workspace)
            named = await self._named(paths)
        except PermissionError:
            named = Walked(0, 0, unread=1)
        held = await self.thread.run(_held, workspace, self._members.get(workspace_id, ()))
        now_s = self.clock.monotonic()
        return Use(
            disk_bytes=named.disk_bytes + held.disk_bytes,
            inodes=named.inodes + len(held.sizes),
            space=space,
            at_s=now_s,
            took_s=now_s - started_s,
            is_partial=bool(named.unread or held.unread or self._hides(workspace_id, held)),
        )

    def _hides(self, workspace_id: WorkspaceId, held: DeletedFiles) -> bool:
        """Return whether descriptors are kept in flight, where their files cannot be read.

        Between send and receive that is so for a moment, but not at several scans.
        """
        before = self._in_flight.get(workspace_id, {})
        self._in_flight[workspace_id] = {each: before.get(each, 0) + 1 for each in held.in_flight}
        return any(each >= IN_FLIGHT_LOOKS for each in self._in_flight[workspace_id].values())

    async def _named(self, paths: tuple[Path, ...]) -> Walked:
        """Return the usage of all files that have a name."""
        if not paths:
            return Walked(0, 0, 0)
        try:
            disk_bytes = await self._total(paths, "--block-size=1")
            return Walked(disk_bytes, await self._total(paths, "--inodes"), unread=0)
        except (ProgramFailed, ValueError):
            return await self.thread.run(walked, map(str, paths), entries_max=ENTRIES_MAX)

    async def _total(self, paths: tuple[Path, ...], kind: str) -> int:
        """Run `du`, which is many times as fast as Python."""
        output = await self.programs.run(
            ("du", "--summarize", "--total", "--one-file-system", kind, "--", *map(str, paths)),
            workspace_id=NODE,
            directory=self.directory,
            environment={"LC_ALL": "C"},
            limit_s=MEASURE_S,
        )
        return int(output[-1].split()[0])


def _may_hide(
    members: tuple[Member, ...], shared_bytes: int, sockets: SocketUse, bound: int
) -> bool:
    """Return whether processes may use much unmapped memory; usually they do not."""
    least = bound // 4
    known_bytes = sockets.total_bytes + sum(sockets.by_inode.values())
    if shared_bytes > least or known_bytes > least:
        return True
    return descriptors_max(members) * PIPE_BYTES > least


def hidden_bytes(members: tuple[Member, ...], sockets: SocketUse) -> dict[int, int]:
    """Return the unmapped memory of processes, by pid.

    Memory of sockets without a known owner is split among the processes with the other sockets.
    """
    held = unmapped_by(members, sockets.by_inode)
    known_bytes = sum(held.socket_bytes.values())
    found = {
        pid: held.own_bytes.get(pid, 0) + held.socket_bytes.get(pid, 0)
        for pid in {*held.own_bytes, *held.socket_bytes}
    }
    rest_bytes = max(0, sockets.total_bytes - known_bytes)
    if not rest_bytes:
        return found
    holders = held.socket_bytes or {each.seen.pid: 1 for each in members}
    whole = sum(holders.values()) or 1
    for pid, part in holders.items():
        found[pid] = found.get(pid, 0) + rest_bytes * part // whole
    return found


def _shared_bytes() -> int:
    """Return the shared memory of the machine, which may belong to no process."""
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("Shmem:"):
                return int(line.split()[1]) * 1024
    return 0


def _is_gone(directory: Path) -> bool:
    try:
        os.stat(directory)
    except FileNotFoundError:
        return True
    except PermissionError:
        # Not readable, but existing.
        return False
    return False


def _held(workspace: Workspace, members: tuple[Member, ...]) -> DeletedFiles:
    return held_by((each.seen.pid for each in members), devices(workspace))
