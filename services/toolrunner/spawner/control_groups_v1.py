"""Control groups v1, for limits that cgroup v2 cannot enforce on this machine.

On many machines the memory, pids and cpu controllers are still attached to v1 hierarchies. Each
workspace gets one group in every such hierarchy that is writable; its processes start in them and
cannot leave. All processes of a workspace share the CPU as one group with the other workspaces,
however many they are.
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


class ControlGroupsV1:
    """The groups below one directory in each hierarchy; without hierarchies this does nothing."""

    def __init__(self, bases: dict[str, str]) -> None:
        self.bases = bases
        self._bounds: dict[str, dict[str, int]] = {}

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
        return groups

    def make(self, workspace: str, quota: dict[str, int]) -> list[str]:
        """Return the groups that a process of a workspace has to join, with its quota applied."""
        joined = []
        if workspace not in self._bounds and len(self._bounds) >= WORKSPACES_MAX:
            for each in list(self._bounds):
                self.remove(each)
        for controller, base in self.bases.items():
            directory = os.path.join(base, workspace)
            with suppress(OSError):
                if workspace not in self._bounds:
                    os.makedirs(directory, exist_ok=True)
                if self._bounds.get(workspace) != quota:
                    bound(controller, directory, quota)
                joined.append(directory)
        self._bounds[workspace] = quota
        return joined

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
        for base in self.bases.values():
            for directory, _, _ in os.walk(os.path.join(base, *names), topdown=False):
                with suppress(OSError):
                    os.rmdir(directory)
        for workspace in names or tuple(self._bounds):
            self._bounds.pop(workspace, None)


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
