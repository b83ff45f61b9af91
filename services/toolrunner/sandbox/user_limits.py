"""What the kernel counts for a user instead of a process, and how workspaces share it.

Theory: the kernel counts inotify instances, queued signals and the like for a user in a namespace
of users, and again in each namespace above for the user who made the one below. A workspace with a
user of its own is counted apart from all others if that user also owns its namespace. Where the
service and all workspaces have one user, they share one count on the host. There each namespace
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
#: Nothing in a workspace may make these; the filter of system calls refuses them too.
NEVER = (
    *("max_fanotify_groups", "max_user_namespaces", "max_pid_namespaces", "max_net_namespaces"),
    *("max_ipc_namespaces", "max_uts_namespaces", "max_cgroup_namespaces", "max_time_namespaces"),
)
#: Limits of a process that the kernel compares with the count of its user.
PROCESS_LIMITS = {
    "pending_signals": resource.RLIMIT_SIGPENDING,
    "queue_bytes": resource.RLIMIT_MSGQUEUE,
    "locked_bytes": resource.RLIMIT_MEMLOCK,
    "processes": resource.RLIMIT_NPROC,
}
#: Nobody gets more, even where there is more: the kernel's memory behind these is not counted as
#: that of a process.
MOST = {"max_inotify_instances": 64, "pending_signals": 16_384}
#: Each namespace gets one part in so many of what is left; as much of the whole stays with the
#: service.
PART = 8
DIRECTORY = "/proc/sys/user"

Limits = dict[str, int]


def host_limits() -> Limits:
    """Return what the user of this process may have; what has no bound is left out."""
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
    """Return what the next namespace gets of what is left, where all share one user."""
    return capped({name: number // PART for name, number in left.items()})


def capped(limits: Limits) -> Limits:
    """Return limits that are no higher than anybody's may be."""
    return {name: min(number, MOST.get(name, number)) for name, number in limits.items()}


@dataclass
class UserLimits:
    """Hands out parts of what one user may have, and takes them back.

    Attributes:
        whole: What the user may have.
        given: The parts that are in use, by the first process of the namespaces.
    """

    whole: Limits = field(default_factory=host_limits)
    given: dict[int, Limits] = field(default_factory=dict)

    def offer(self, *, has_own_user: bool) -> Limits:
        """Return the limits of new namespaces; `give` notes that they are used."""
        if has_own_user:
            return capped(self.whole)
        left = {
            name: number - number // PART - sum(each.get(name, 0) for each in self.given.values())
            for name, number in self.whole.items()
        }
        return part_of({name: max(0, number) for name, number in left.items()})

    def give(self, first: int, limits: Limits, *, has_own_user: bool) -> None:
        """Note that namespaces use a part."""
        if not has_own_user:
            self.given[first] = limits

    def take_back(self, first: int) -> None:
        """Note that nothing of namespaces is left."""
        self.given.pop(first, None)


def bound_namespace(limits: Limits) -> None:
    """Bound the namespace of users that this process is in; needs the rights of its root."""
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
    """Bound this process and whatever it becomes."""
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
