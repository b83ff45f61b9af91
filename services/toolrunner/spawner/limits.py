"""Limits of one process: those that a process keeps by itself, and those of a control group.

Both come as numbers by name, 0 for none, so that a message can carry them: `open_files`,
`file_bytes`, `cpu_s`, `memory_bytes`, `pids` and `cpu_millicores`. The first four hold for each
process alone. Where there are control groups, memory, pids and the share of the processor hold for
a process with all that it starts.
"""

import os
import resource
from contextlib import suppress

#: After the first signal a process may still tidy up.
CPU_GRACE_S = 5
CPU_PERIOD_US = 100_000
#: Of at most 1000; services have 0 or less.
KILLED_FIRST = 900
CONTROLLERS = ("memory", "pids", "cpu")
#: `RLIMIT_NPROC` refuses at once; a group does so late, with a lock that whoever starts needs.
PIDS_SPARE = 64
SUBTREE = "cgroup.subtree_control"
#: What only a control group can keep, and all that it can.
GROUP_ONLY = ("pids", "cpu_millicores")
GROUP_LIMITS = (*GROUP_ONLY, "memory_bytes")


def limit_process(limits: dict[str, int], open_files: tuple[int, int]) -> None:
    """Limit this process and whatever it becomes.

    Args:
        limits: The limits.
        open_files: The limits on open files that this process had from the service.
    """
    soft, hard = open_files
    if limits["open_files"]:
        wanted = limits["open_files"]
        hard = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        soft = hard if soft == resource.RLIM_INFINITY else min(soft, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    # A core would be written into the workspace, and hold whatever the process knew.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    lower(resource.RLIMIT_FSIZE, limits["file_bytes"])
    # Not the address space: many programs reserve far more of that than they ever use.
    lower(resource.RLIMIT_DATA, limits["memory_bytes"])
    lower(resource.RLIMIT_CPU, limits["cpu_s"], CPU_GRACE_S)


def lower(kind: int, wanted: int, grace: int = 0) -> None:
    """Set a limit that only its owner's betters can raise; 0 leaves it as it is."""
    if not wanted:
        return
    hard = resource.getrlimit(kind)[1]
    most = wanted + grace
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (min(wanted, most), most))


def pass_controllers_on(group: str) -> None:
    """Let the groups below a group have limits, as far as it may give them any."""
    for controller in CONTROLLERS:
        with suppress(OSError), open(os.path.join(group, SUBTREE), "w") as file:
            file.write(f"+{controller}")


def limit_group(
    group: str, limits: dict[str, int], *, dies_together: bool = True
) -> frozenset[str]:
    """Limit all that is in a control group; return the names of what it keeps.

    Args:
        group: The group.
        limits: The limits.
        dies_together: Whether all of it is killed when memory runs out, or only whoever has most.
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
    """Have this process, and whatever it becomes, killed before any service when memory runs out.

    Only root keeps it from taking that back.
    """
    with suppress(OSError):
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, b"%d" % KILLED_FIRST)
        finally:
            os.close(fd)


def put(group: str, name: str, value: object) -> bool:
    """Write to a file of a control group; return whether it took it."""
    # Without the controller there is no such file, and none shall be made.
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
    """Tell whether the kernel killed someone in a control group for want of memory."""
    with suppress(OSError, ValueError), open(os.path.join(group, "memory.events")) as file:
        events = dict(line.split() for line in file)
        return int(events.get("oom_kill", "0")) > 0
    return False
