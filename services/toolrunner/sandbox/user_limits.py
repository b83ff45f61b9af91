"""Resources that the kernel counts per user instead of per process, shared among workspaces.

Theory: the kernel counts inotify instances, queued signals and similar resources for a user in a
user namespace, and again in each parent namespace for the user who created the child. A workspace
with its own user is counted separately from all others if that user also owns its namespace. Where
the service and all workspaces have one user, they share one count on the host. There each namespace
gets a part of it at its creation, which no process inside can exceed, and the parts of all
namespaces together leave a reserve to the service.
"""

import os
import resource
from contextlib import suppress
from dataclasses import dataclass, field

#: Names below /proc/sys/user, with the setting of the whole host for the same count.
COUNTS = {
    "max_inotify_instances": "/proc/sys/fs/inotify/max_user_instances",
    "max_inotify_watches": "/proc/sys/fs/inotify/max_user_watches",
}
#: Processes in a workspace may create none of these; the seccomp filter refuses them too.
NEVER = (
    *("max_fanotify_groups", "max_user_namespaces", "max_pid_namespaces", "max_net_namespaces"),
    *("max_ipc_namespaces", "max_uts_namespaces", "max_cgroup_namespaces", "max_time_namespaces"),
)
#: Resource limits that the kernel compares with the count of the user.
PROCESS_LIMITS = {
    "pending_signals": resource.RLIMIT_SIGPENDING,
    "queue_bytes": resource.RLIMIT_MSGQUEUE,
    "locked_bytes": resource.RLIMIT_MEMLOCK,
    "processes": resource.RLIMIT_NPROC,
}
#: Upper bounds, even where more is available: the kernel memory behind these is not charged to a
#: process.
MOST = {"max_inotify_instances": 64, "pending_signals": 16_384}
#: Each namespace gets 1/PART of the remainder; 1/PART of the whole stays with the service.
PART = 8
DIRECTORY = "/proc/sys/user"

Limits = dict[str, int]


def host_limits() -> Limits:
    """Return the limits of this process's user; unlimited ones are omitted."""
    found: Limits = {}
    for name, path in COUNTS.items():
        numbers = [_number(each) for each in (path, f"{DIRECTORY}/{name}")]
        if known := [each for each in numbers if each is not None]:
            found[name] = min(known)
    for name, kind in PROCESS_LIMITS.items():
        soft = resource.getrlimit(kind)[0]
        if soft != resource.RLIM_INFINITY:
            found[name] = soft
    return found


def part_of(left: Limits) -> Limits:
    """Return the share of the next namespace of the remainder, where all share one user."""
    return capped({name: number // PART for name, number in left.items()})


def capped(limits: Limits) -> Limits:
    """Return limits reduced to the upper bounds."""
    return {name: min(number, MOST.get(name, number)) for name, number in limits.items()}


@dataclass
class UserLimits:
    """Allocates parts of the limits of one user, and frees them.

    Attributes:
        whole: The limits of the user.
        given: The parts that are in use, by the first process of the namespaces.
    """

    whole: Limits = field(default_factory=host_limits)
    given: dict[int, Limits] = field(default_factory=dict)

    def offer(self, *, has_own_user: bool) -> Limits:
        """Return the limits of new namespaces; `give` records that they are used."""
        if has_own_user:
            return capped(self.whole)
        left = {
            name: number - number // PART - sum(each.get(name, 0) for each in self.given.values())
            for name, number in self.whole.items()
        }
        return part_of({name: max(0, number) for name, number in left.items()})

    def give(self, first: int, limits: Limits, *, has_own_user: bool) -> None:
        """Record that namespaces use a part."""
        if not has_own_user:
            self.given[first] = limits

    def take_back(self, first: int) -> None:
        """Free the part of namespaces that have ended."""
        self.given.pop(first, None)


def bound_namespace(limits: Limits) -> None:
    """Limit the user namespace of this process; requires its root."""
    wanted = {
        **dict.fromkeys(NEVER, 0),
        **{name: limits[name] for name in COUNTS if name in limits},
    }
    for name, number in wanted.items():
        # Older kernels do not count all of these.
        with suppress(FileNotFoundError):
            fd = os.open(f"{DIRECTORY}/{name}", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(fd, str(number).encode())
            finally:
                os.close(fd)


def bound_process(limits: Limits) -> None:
    """Limit this process; the limits survive exec."""
    for name, kind in PROCESS_LIMITS.items():
        if name in limits:
            soft, hard = resource.getrlimit(kind)
            most = _lower(limits[name], hard)
            resource.setrlimit(kind, (_lower(most, soft), most))


def _lower(wanted: int, present: int) -> int:
    return wanted if present == resource.RLIM_INFINITY else min(wanted, present)


def _number(path: str) -> int | None:
    with suppress(OSError, ValueError), open(path) as file:
        return int(file.read())
    return None
