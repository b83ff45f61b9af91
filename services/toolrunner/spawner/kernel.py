"""Kernel interfaces: processes as /proc shows them, and killing a process tree."""

import ctypes
import hashlib
import os
import resource
import select
import signal
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from toolrunner.sandbox import RLIMIT_LOCKS

#: The environment variable that identifies a process as one of ours, whatever its parent.
PROCESS_MARK = "PARLEY_PROCESS_ID"

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
SYS_OPENAT2 = 437
RESOLVE_BENEATH = 0x08
FREEZE_ROUNDS_MAX = 100
KILL_ROUND_S = 0.01
CONTENT_BYTES = 4096
KILL_ROUNDS_MAX = 500
#: Field indexes of /proc/PID/stat, counted from the field after the name.
STATE, PARENT, GROUP, SESSION, THREADS, STARTED = 0, 1, 2, 3, 17, 19

libc = ctypes.CDLL(None, use_errno=True)
_LINE = b"Max file locks"
_MARK_MAX = (1 << 62) - 1


@dataclass(frozen=True)
class Seen:
    """A process as /proc shows it."""

    pid: int
    parent: int
    group: int
    session: int
    started: int = 0  # In clock ticks since boot; with the pid it identifies one process.


def prctl(option: int, value: int) -> None:
    """Call prctl for this process."""
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def open_directory_beneath(root: str, path: str) -> int:
    """Open a directory inside `root`; the kernel refuses paths that leave it (EXDEV)."""
    root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        how = struct.pack("QQQ", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, RESOLVE_BENEATH)
        target = os.fsencode(path or ".")
        opened: int = libc.syscall(SYS_OPENAT2, root_fd, target, how, len(how))
        if opened < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        return opened
    finally:
        os.close(root_fd)


def running_processes() -> list[Seen]:
    """Return all processes of the machine that are visible and not dead."""
    found = (look(int(name)) for name in os.listdir("/proc") if name.isdecimal())
    return [seen for seen in found if seen is not None]


def look(pid: int) -> Seen | None:
    """Return a process, or None if it does not exist or is dead."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        words = words_of(stat.read())
        # A process whose first thread ended continues as long as it has others.
        if words[STATE] not in (b"Z", b"X") or int(words[THREADS]) > 1:
            return Seen(
                pid, int(words[PARENT]), int(words[GROUP]), int(words[SESSION]), int(words[STARTED])
            )
    return None


def started_ticks(pid: int) -> int:
    """Return when a process started, also of a zombie; 0 if there is none."""
    with suppress(OSError), open(f"/proc/{pid}/stat", "rb") as stat:
        return int(words_of(stat.read())[STARTED])
    return 0


def words_of(stat: bytes) -> list[bytes]:
    """Return the fields after the name, which is in parentheses and may contain parentheses."""
    return stat.rpartition(b")")[2].split()


def running_below(ancestor: int) -> list[Seen]:
    """Return the descendants of a process, in time proportional to their number."""
    pids = list(children_of(ancestor) or ())
    for pid in pids:
        pids += children_of(pid) or ()
    if not pids and not os.path.exists(f"/proc/{ancestor}/task/{ancestor}/children"):
        return descendants(ancestor, running_processes())
    return [seen for seen in map(look, pids) if seen is not None]


def descendants(ancestor: int, seen: list[Seen]) -> list[Seen]:
    """Return the descendants of `ancestor` among the given processes."""
    children: dict[int, list[Seen]] = {}
    for each in seen:
        children.setdefault(each.parent, []).append(each)
    found = list(children.get(ancestor, ()))
    for each in found:
        found += children.get(each.pid, ())
    return found


def end_descendants(ancestor: int) -> None:
    """Kill and reap all descendants of `ancestor`, this process.

    A process that cannot be killed, because the kernel holds it, is given up after some seconds.
    """
    freeze(lambda: descendants(ancestor, running_processes()))
    for _ in range(KILL_ROUNDS_MAX):
        for each in descendants(ancestor, running_processes()):
            send(each, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            select.select([], [], [], KILL_ROUND_S)
            continue
        return


def freeze(find: Callable[[], list[Seen]]) -> list[Seen]:
    """Stop all processes that `find` returns, until it returns no more, and return them.

    Killing from a list misses processes that fork meanwhile; a stopped process cannot fork.
    """
    stopped: dict[tuple[int, int], Seen] = {}
    for _ in range(FREEZE_ROUNDS_MAX):
        moving = {(each.pid, each.started): each for each in find()}
        moving = {name: each for name, each in moving.items() if name not in stopped}
        if not moving:
            break
        for each in moving.values():
            send(each, signal.SIGSTOP)
        stopped |= moving
    return list(stopped.values())


def send(seen: Seen, number: int) -> bool:
    """Send a signal to a process, not to another with a reused pid; return whether it existed."""
    try:
        pid_fd = os.pidfd_open(seen.pid)
    except ProcessLookupError:
        return False
    try:
        if started_ticks(seen.pid) != seen.started:
            return False
        signal.pidfd_send_signal(pid_fd, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(pid_fd)
    return True


def send_to_child(pid: int, number: int) -> bool:
    """Send a signal to a child that was not reaped, so that its pid cannot have been reused."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def owner_of(pid: int) -> int:
    """Return the user id of a process, -1 if there is none."""
    with suppress(OSError):
        return os.stat(f"/proc/{pid}").st_uid
    return -1


def mark_of(pid: int) -> str | None:
    """Return the mark that a process was started with, or None if there is none to be read."""
    for variable in variables(pid):
        name, _, value = variable.partition(b"=")
        if name == PROCESS_MARK.encode():
            return value.decode(errors="replace")
    return None


def variables(pid: int) -> list[bytes]:
    """Return the variables that a process was started with, none if they cannot be read."""
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:
        return environ.read().split(b"\0")
    return []


def end_marked(process_ids: frozenset[str]) -> None:
    """Kill all processes that were started with one of these marks, whatever their parent."""
    marks = {f"{PROCESS_MARK}={process_id}".encode() for process_id in process_ids}

    def find() -> list[Seen]:
        return [each for each in running_processes() if not marks.isdisjoint(variables(each.pid))]

    if marks:
        for each in freeze(find):
            send(each, signal.SIGKILL)


def is_working_in(pid: int, directory: str) -> bool:
    """Return whether a process has its working directory or an open file in a directory."""
    inside = directory.rstrip("/") + "/"
    with suppress(OSError):
        if (os.readlink(f"/proc/{pid}/cwd") + "/").startswith(inside):
            return True
    with suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with suppress(OSError):
                if os.readlink(f"/proc/{pid}/fd/{name}").startswith(inside):
                    return True
    return False


def content(path: str) -> bytes:
    """Return the content of a kernel file; `open` would make five more system calls.

    Raises:
        OSError: There is no such file, or it cannot be read.
    """
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = [os.read(fd, CONTENT_BYTES)]
        while pieces[-1]:
            pieces.append(os.read(fd, CONTENT_BYTES))
    finally:
        os.close(fd)
    return b"".join(pieces)


def children_of(pid: int) -> set[int] | None:
    """Return the children of a process, or None if the kernel does not list them."""
    found: set[int] = set()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            children = content(f"/proc/{pid}/task/{thread}/children")
            found |= {int(child) for child in children.split()}
    except OSError:
        return None
    return found


def mark_of_workspace(workspace: str) -> int:
    """Return the number of a workspace, never 0."""
    digest = hashlib.blake2b(workspace.encode(), digest_size=8).digest()
    return 1 + int.from_bytes(digest, "big") % _MARK_MAX


def mark_self(workspace: str, mark: str = "") -> None:
    """Mark this process and its future descendants.

    Args:
        workspace: Its workspace, in the hard limit.
        mark: Another mark, in the soft limit; empty for none.
    """
    number = mark_of_workspace(workspace)
    # If this program itself runs inside of a workspace, it keeps the mark of that one.
    with suppress(OSError, ValueError):
        resource.setrlimit(RLIMIT_LOCKS, (number, number))
    if mark:
        hard = resource.getrlimit(RLIMIT_LOCKS)[1]
        with suppress(OSError, ValueError):
            resource.setrlimit(RLIMIT_LOCKS, (_soft_limit_of(mark, hard), hard))


def _soft_limit_of(mark: str, hard: int) -> int:
    """Return the number of a mark, less than the hard limit, which processes without one have."""
    digest = hashlib.blake2b(mark.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % (hard if hard > 0 else _MARK_MAX)


def has_mark(pid: int, mark: str) -> bool:
    """Return whether a process has a mark besides that of its workspace."""
    with suppress(OSError, ValueError, IndexError):
        soft, hard = (
            resource.RLIM_INFINITY if word == b"unlimited" else int(word)
            for word in _limit_of_locks(pid, "/proc")[:2]
        )
        return soft == _soft_limit_of(mark, hard)
    return False


def mark_on(pid: int, proc: str = "/proc") -> int:
    """Return the mark of a process, 0 if it has none or has exited."""
    with suppress(OSError, ValueError, IndexError):
        # The hard limit, which unprivileged processes cannot raise.
        return int(_limit_of_locks(pid, proc)[1])
    return 0


def _limit_of_locks(pid: int, proc: str) -> list[bytes]:
    """Return the soft and the hard limit; nothing if there are none."""
    with open(f"{proc}/{pid}/limits", "rb") as file:
        for line in file:
            if line.startswith(_LINE):
                return line.removeprefix(_LINE).split()
    return []
