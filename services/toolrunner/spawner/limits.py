"""Limits of one process: resource limits, and those of a control group.

Both are numbers by name, 0 for none, so that a message can contain them: `open_files`,
`file_bytes`, `cpu_s`, `memory_bytes`, `pids` and `cpu_millicores`. The first four apply to each
process alone. Where there are control groups, memory, pids and the CPU share apply to a process
with its descendants.
"""

import os
import resource
from contextlib import suppress

#: After the first signal a process may still clean up.
CPU_GRACE_S = 5
CPU_PERIOD_US = 100_000
#: Of at most 1000; services have 0 or less.
KILLED_FIRST = 900
CONTROLLERS = ("memory", "pids", "cpu")
#: `RLIMIT_NPROC` refuses at once; a group refuses late, holding a lock that every fork needs.
PIDS_SPARE = 64
SUBTREE = "cgroup.subtree_control"
#: Limits that only a control group can enforce, and all that it can.
GROUP_ONLY = ("pids", "cpu_millicores")
GROUP_LIMITS = (*GROUP_ONLY, "memory_bytes")


def limit_process(limits: dict[str, int], open_files: tuple[int, int]) -> None:
    """Set the resource limits of this process, which survive exec.

    Args:
        limits: The limits.
        open_files: The limits on open files that this process inherited from the service.
    """
    soft, hard = open_files
    if limits["open_files"]:
        wanted = limits["open_files"]
        hard = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    # A core dump would be written into the workspace, with the memory of the process.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
    # Not the address space: many programs reserve far more of it than they ever use.
    lower(resource.RLIMIT_DATA, limits["memory_bytes"])
    lower(resource.RLIMIT_CPU, limits["cpu_s"], CPU_GRACE_S)


def lower(kind: int, wanted: int, grace: int = 0) -> None:
    """Lower a limit, which only a privileged process can raise again; 0 leaves it unchanged."""
    if not wanted:
        return
    hard = resource.getrlimit(kind)[1]
    most = wanted + grace
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (min(wanted, most), most))


def pass_controllers_on(group: str) -> None:
    """Enable the controllers for the subgroups of a group, as far as they are available."""
    for controller in CONTROLLERS:
        with suppress(OSError), open(os.path.join(group, SUBTREE), "w") as file:
            file.write(f"+{controller}")


def limit_group(
    group: str, limits: dict[str, int], *, dies_together: bool = True
) -> frozenset[str]:
    """Limit a control group; return the names of the limits that it enforces.

    Args:
        group: The group.
        limits: The limits.
        dies_together: Whether an OOM kill ends the whole group, or only the largest process.
    """
    if not group or not any(limits[name] for name in GROUP_LIMITS):
        return frozenset()
    wanted = {
        "memory_bytes": ("memory.max", limits["memory_bytes"]),
        "pids": ("pids.max", limits["pids"]),
        "cpu_millicores": (
            "cpu.max",
            f"{limits['cpu_millicores'] * CPU_PERIOD_US // 1000} {CPU_PERIOD_US}",
        ),
    }
    kept = {
        name for name, (file, value) in wanted.items() if limits[name] and put(group, file, value)
    }
    if "memory_bytes" in kept and dies_together:
        put(group, "memory.oom.group", 1)
    return frozenset(kept)


def offer_to_the_killer() -> None:
    """Raise the OOM score of this process, so that it is killed before any service.

    The score survives exec. The process can lower it again unless it was root when it set it.
    """
    with suppress(OSError):
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"%d" % KILLED_FIRST)
        finally:
            os.close(fd)


def put(group: str, name: str, value: object) -> bool:
    """Write to a file of a control group; return whether the write succeeded."""
    # Without the controller the file does not exist, and must not be created.
    try:
        fd = os.open(os.path.join(group, name), os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, str(value).encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def was_short_of_memory(group: str) -> bool:
    """Return whether the OOM killer killed a process in a control group."""
    with suppress(OSError, ValueError), open(os.path.join(group, "memory.events")) as file:
        events = dict(line.split() for line in file)
        return int(events.get("oom_kill", "0")) > 0
    return False
