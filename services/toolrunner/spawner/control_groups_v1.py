"""Control groups v1, for limits that cgroup v2 cannot enforce on this machine.

On many machines the memory, pids and cpu controllers are still attached to v1 hierarchies. Each
workspace gets one group in every such hierarchy that is writable; its processes start in them and
cannot leave. All processes of a workspace share the CPU as one group with the other workspaces,
however many they are.

A workspace that uses the CPU continuously is moved to a second group of the cpu hierarchy, which
is idle to the kernel: its processes run when nothing else does, and every other process that wakes
up runs at once. A nice value cannot do that, because it counts only within one group.
"""

import os
from contextlib import suppress

from toolrunner.sandbox import found_groups
from toolrunner.spawner.kernel import content
from toolrunner.spawner.limits import CPU_PERIOD_US, PIDS_SPARE, put

PROCS = "cgroup.procs"
WORKSPACES_MAX = 256
#: A workspace as a whole has half the CPU weight of one process of a service.
SHARES = 512
CPU = "cpu"
#: The end of the name of the group of all workspaces that give way.
YIELDING = "-yielding"
#: The least, for kernels whose groups cannot be idle.
SHARES_LEAST = 2
#: Processes that are started while others are moved have to be moved, too.
MOVE_ROUNDS_MAX = 5


class ControlGroupsV1:
    """The groups below one directory in each hierarchy; without hierarchies this does nothing."""

    def __init__(self, bases: dict[str, str]) -> None:
        self.bases = bases
        self._bounds: dict[str, dict[str, int]] = {}
        self._yielding: set[str] = set()

    @classmethod
    def made(cls, name: str, lacking: frozenset[str]) -> "ControlGroupsV1":
        """Create groups for controllers that cgroup v2 lacks, where permitted."""
        bases: dict[str, str] = {}
        for controller, group in found_groups().items():
            if controller in lacking:
                with suppress(OSError):
                    base = os.path.join(group, name)
                    os.makedirs(base, exist_ok=True)
                    if os.access(os.path.join(base, PROCS), os.W_OK):
                        bases[controller] = base
        groups = cls(bases)
        groups.remove()
        for base in bases.values():
            with suppress(OSError):
                os.makedirs(base, exist_ok=True)
        groups.prepare_yielding()
        return groups

    def prepare_yielding(self) -> None:
        """Make the group of the workspaces that give way."""
        if CPU in self.bases:
            base = self.bases[CPU] + YIELDING
            with suppress(OSError):
                os.makedirs(base, exist_ok=True)
            if not put(base, "cpu.idle", 1):
                put(base, "cpu.shares", SHARES_LEAST)

    def make(self, workspace: str, quota: dict[str, int]) -> list[str]:
        """Return the groups that a process of a workspace has to join, with its quota applied."""
        joined = []
        if workspace not in self._bounds and len(self._bounds) >= WORKSPACES_MAX:
            for each in list(self._bounds):
                self.remove(each)
        for controller in self.bases:
            directory = self._directory(controller, workspace)
            with suppress(OSError):
                is_new = workspace not in self._bounds or not os.path.isdir(directory)
                if is_new:
                    os.makedirs(directory, exist_ok=True)
                if is_new or self._bounds[workspace] != quota:
                    bound(controller, directory, quota)
                joined.append(directory)
        self._bounds[workspace] = quota
        return joined

    def give_way(self, workspace: str, *, yields: bool) -> None:
        """Let the processes of a workspace, and those that it starts, give way to all others."""
        if CPU not in self.bases or workspace not in self._bounds:
            return
        (self._yielding.add if yields else self._yielding.discard)(workspace)
        target = self._directory(CPU, workspace)
        usual, yielding = (os.path.join(self.bases[CPU] + end, workspace) for end in ("", YIELDING))
        # The group that they leave stays, because a child may be about to join it.
        source = usual if target == yielding else yielding
        with suppress(OSError):
            if not os.path.isdir(target):
                os.makedirs(target)
            bound(CPU, target, self._bounds[workspace])
            for _ in range(MOVE_ROUNDS_MAX):
                if not move(source, target):
                    break

    def none_gives_way(self) -> None:
        """Let no workspace give way any more."""
        for workspace in list(self._yielding):
            self.give_way(workspace, yields=False)

    def _directory(self, controller: str, workspace: str) -> str:
        is_yielding = controller == CPU and workspace in self._yielding
        base = self.bases[controller] + (YIELDING if is_yielding else "")
        return os.path.join(base, workspace)

    def deaths(self, workspace: str) -> int:
        """Return the number of OOM kills of a workspace."""
        base = self.bases.get("memory")
        if base is not None:
            path = os.path.join(base, workspace, "memory.oom_control")
            with suppress(OSError, ValueError):
                counters = dict(line.split() for line in content(path).splitlines())
                return int(counters.get(b"oom_kill", b"0"))
        return 0

    def remove(self, *names: str) -> None:
        """Remove the groups of a workspace, or all; those that still have processes stay."""
        yielding = [self.bases[CPU] + YIELDING] if CPU in self.bases else []
        bases = (*self.bases.values(), *yielding)
        for base in bases:
            for directory, _, _ in os.walk(os.path.join(base, *names), topdown=False):
                with suppress(OSError):
                    os.rmdir(directory)
        for workspace in names or tuple(self._bounds):
            # Processes that are left go on with their quota, in the group where they are.
            if not any(os.path.isdir(os.path.join(base, workspace)) for base in bases):
                self._bounds.pop(workspace, None)
                self._yielding.discard(workspace)


def move(source: str, target: str) -> int:
    """Move the processes of a group to another one; return how many there were."""
    with open(os.path.join(source, PROCS)) as file:
        pids = file.read().split()
    for pid in pids:
        put(target, PROCS, pid)
    return len(pids)


def bound(controller: str, group: str, quota: dict[str, int]) -> None:
    """Apply a part of a quota to a group; 0 removes a limit."""
    match controller:
        case "pids":
            put(group, "pids.max", quota["pids"] + PIDS_SPARE if quota["pids"] else "max")
        case "memory":
            put(group, "memory.limit_in_bytes", quota["memory_bytes"] or -1)
        case "cpu":
            cores = quota["cpu_millicores"]
            put(group, "cpu.shares", SHARES)
            put(group, "cpu.cfs_period_us", CPU_PERIOD_US)
            put(group, "cpu.cfs_quota_us", cores * CPU_PERIOD_US // 1000 if cores else -1)
