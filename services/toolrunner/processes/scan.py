"""The process scan: resource usage of all descendants of the spawner, by workspace.

Theory: descendants of a command's leader belong to that command. Processes that a command left
behind are identified by the workspace's user, by the pid namespace that they cannot leave, or by
the mark that they cannot remove. Reading a process takes some twenty microseconds, in a thread that
blocks all others now and then (GIL). So only descendants of the spawner are read, by their lists of
children, unless there are so many of them that reading all processes is cheaper.
"""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from toolrunner.primitives.domain import ProcessId, WorkspaceId
from toolrunner.spawner import Seen, mark_on, words_of

PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
TICKS_S: Final = os.sysconf("SC_CLK_TCK")
BLOCK_BYTES: Final = 512
#: Field indexes of /proc/PID/stat, counted from the field after the name.
STATE, PARENT, GROUP, SESSION, TIMES, THREADS, STARTED, RESIDENT = (
    *(0, 1, 2, 3),
    slice(11, 15),
    *(17, 19, 21),
)
DEAD: Final = (b"Z", b"X")
#: More than the kernel returns for one process.
STAT_BYTES: Final = 4096
#: Reading the children of a process takes about as long as reading so many processes.
ASKING: Final = 2
#: The buffer of a pipe when its user has many of them; the first few hundred may be larger.
PIPE_BYTES: Final = 8192
PIPE_PREFIX: Final = "pipe:["
SOCKET_PREFIX: Final = "socket:["


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a workspace.

    Attributes:
        seen: The process itself.
        process_id: The command it belongs to; empty if that left it behind.
        cpu_s: CPU time of it and of the children that it waited for.
        resident_bytes: Resident memory, including shared memory.
    """

    seen: Seen
    process_id: ProcessId
    cpu_s: float
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class Leader:
    """The leader of a running command."""

    workspace_id: WorkspaceId
    process_id: ProcessId


Members = Mapping[WorkspaceId, tuple[Member, ...]]


@dataclass
class ProcessScan:
    """Scans the processes below a spawner.

    Attributes:
        spawner_pid: The spawner.
        workspaces_by_user: Returns the workspaces by user id; called only for unknown processes.
        workspaces_by_mark: Returns the workspaces by mark; called only for unknown marks.
        proc: The path of procfs.
    """

    spawner_pid: int
    workspaces_by_user: Callable[[], Mapping[int, WorkspaceId]]
    workspaces_by_mark: Callable[[], Mapping[int, WorkspaceId]] = dict
    proc: str = "/proc"
    _namespaces: dict[str, WorkspaceId] = field(default_factory=dict)
    _known: dict[int, str] = field(default_factory=dict)
    _marks: dict[int, WorkspaceId | None] = field(default_factory=dict)

    def take(self, leaders: Mapping[int, Leader]) -> Members:
        """Return all processes of workspaces, given the leaders of commands by pid."""
        found = {each.seen.pid: each for each in self._everyone()}
        self._learn(leaders, found)
        users: Mapping[int, WorkspaceId] | None = None
        members: dict[WorkspaceId, list[Member]] = {}
        for pid, member in found.items():
            line = self._line(pid, found)
            if line is None:
                continue
            leader = next((leaders[each] for each in line if each in leaders), None)
            if leader is None:
                if users is None:
                    users = self.workspaces_by_user()
                workspace_id = self._owner(pid, users)
                if workspace_id is None:
                    continue
                leader = Leader(workspace_id, ProcessId(""))
            known = Member(member.seen, leader.process_id, member.cpu_s, member.resident_bytes)
            members.setdefault(leader.workspace_id, []).append(known)
        return {workspace_id: tuple(each) for workspace_id, each in members.items()}

    def _everyone(self) -> list[Member]:
        """Return the descendants of the spawner, or all processes if that is cheaper."""
        everybody = [int(name) for name in os.listdir(self.proc) if name.isdecimal()]
        below = self._below(len(everybody) // ASKING)
        looked_at = map(self._looked_at, everybody if below is None else below)
        return [member for member in looked_at if member is not None]

    def _below(self, asked_max: int) -> list[int] | None:
        """Return the descendants of the spawner; None if there are too many, or not readable."""
        found = [self.spawner_pid]
        asked = 0
        for pid in found:
            try:
                tasks = os.listdir(f"{self.proc}/{pid}/task")
                asked += len(tasks)
                if asked > asked_max:
                    return None
                found += (child for task in tasks for child in self._children(pid, task))
            except OSError:
                if pid == self.spawner_pid:
                    return None
        return found[1:]

    def _children(self, pid: int, task: str) -> list[int]:
        with open(f"{self.proc}/{pid}/task/{task}/children", "rb", buffering=0) as file:
            return [int(child) for child in file.readall().split()]

    def _looked_at(self, pid: int) -> Member | None:
        stat = f"{self.proc}/{pid}/stat"
        with suppress(OSError, IndexError), open(stat, "rb", buffering=0) as file:
            words = words_of(file.read(STAT_BYTES))
            if words[STATE] in DEAD and int(words[THREADS]) <= 1:
                return None
            if words[STATE] in DEAD:
                words[RESIDENT] = self._resident_of_threads(pid)
            return _member(pid, words)
        return None

    def _resident_of_threads(self, pid: int) -> bytes:
        """Return the pages of a process whose first thread ended, which then reports none."""
        for thread in os.listdir(f"{self.proc}/{pid}/task"):
            stat = f"{self.proc}/{pid}/task/{thread}/stat"
            with suppress(OSError, IndexError), open(stat, "rb", buffering=0) as file:
                words = words_of(file.read(STAT_BYTES))
                if words[STATE] not in DEAD:
                    return words[RESIDENT]
        return b"0"

    def _line(self, pid: int, found: Mapping[int, Member]) -> list[int] | None:
        """Return a process and its ancestors up to the spawner; None if it is not a descendant."""
        line: list[int] = []
        while pid in found:
            line.append(pid)
            pid = found[pid].seen.parent
            if pid == self.spawner_pid:
                return line
        return None

    def _learn(self, leaders: Mapping[int, Leader], found: Mapping[int, Member]) -> None:
        """Record the pid namespaces of the commands of workspaces."""
        own = self._namespace(os.getpid())
        for pid, leader in leaders.items():
            if pid in found and self._known.get(pid) != leader.process_id:
                self._known[pid] = leader.process_id
                namespace = self._namespace(pid)
                if namespace and namespace != own:
                    self._namespaces[namespace] = leader.workspace_id
        for pid in [pid for pid in self._known if pid not in found]:
            del self._known[pid]

    def _owner(self, pid: int, users: Mapping[int, WorkspaceId]) -> WorkspaceId | None:
        with suppress(OSError):
            user = os.stat(f"{self.proc}/{pid}").st_uid
            if user in users:
                return users[user]
        inside = self._namespaces.get(self._namespace(pid))
        return self._marked(pid) if inside is None else inside

    def _marked(self, pid: int) -> WorkspaceId | None:
        mark = mark_on(pid, self.proc)
        if mark and mark not in self._marks:
            # Marks of the node's own programs belong to no workspace.
            self._marks = {**self._marks, mark: None, **self.workspaces_by_mark()}
        return self._marks.get(mark)

    def _namespace(self, pid: int) -> str:
        with suppress(OSError):
            return os.readlink(f"{self.proc}/{pid}/ns/pid")
        return ""


def _member(pid: int, words: list[bytes]) -> Member:
    seen = Seen(
        pid, int(words[PARENT]), int(words[GROUP]), int(words[SESSION]), int(words[STARTED])
    )
    cpu_s = sum(map(int, words[TIMES])) / TICKS_S
    return Member(seen, ProcessId(""), cpu_s, int(words[RESIDENT]) * PAGE_BYTES)


def proportional_bytes(member: Member) -> int:
    """Return the proportional set size of a process; the resident size if it is not readable."""
    with suppress(OSError, ValueError), open(f"/proc/{member.seen.pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return member.resident_bytes


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Memory that processes hold by descriptors without mapping it, by pid.

    Attributes:
        own_bytes: memfd files and pipes.
        socket_bytes: Data in socket buffers, as far as it is known for each socket.
    """

    own_bytes: dict[int, int] = field(default_factory=dict)
    socket_bytes: dict[int, int] = field(default_factory=dict)


def unmapped_by(members: tuple[Member, ...], sockets: Mapping[int, int]) -> Unmapped:
    """Return the unmapped memory of processes; shared objects are counted for the first holder.

    Args:
        members: The processes.
        sockets: Data in socket buffers, by inode.
    """
    counted: set[int] = set()
    held = Unmapped()
    for member in members:
        directory = f"/proc/{member.seen.pid}/fd"
        with suppress(OSError):
            for name in os.listdir(directory):
                with suppress(OSError, ValueError):
                    _count(held, member.seen.pid, f"{directory}/{name}", counted, sockets)
    return held


def _count(
    held: Unmapped, pid: int, path: str, counted: set[int], sockets: Mapping[int, int]
) -> None:
    link = os.readlink(path)
    if link.startswith("/memfd:"):
        status = os.stat(path)
        inode, size, sizes = status.st_ino, status.st_blocks * BLOCK_BYTES, held.own_bytes
    elif link.startswith(PIPE_PREFIX):
        inode, size, sizes = int(link[len(PIPE_PREFIX) : -1]), PIPE_BYTES, held.own_bytes
    elif link.startswith(SOCKET_PREFIX):
        inode = int(link[len(SOCKET_PREFIX) : -1])
        size, sizes = sockets.get(inode, 0), held.socket_bytes
    else:
        return
    if inode not in counted:
        counted.add(inode)
        sizes[pid] = sizes.get(pid, 0) + size


def descriptors_max(members: tuple[Member, ...]) -> int:
    """Return an upper bound of the open descriptors of processes, without listing them."""
    slots = 0
    for member in members:
        with suppress(OSError, ValueError), open(f"/proc/{member.seen.pid}/status") as file:
            found = next((line for line in file if line.startswith("FDSize:")), "FDSize: 0")
            slots += int(found.split()[1])
    return slots


def set_nice(member: Member, nice: int) -> None:
    """Set the nice value of all threads of a process, where that is permitted.

    Not the idle class: a process that is killed, or that holds a lock, must still get CPU time.
    """
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{member.seen.pid}/task"):
            with suppress(OSError):
                if os.getpriority(os.PRIO_PROCESS, int(thread)) != nice:
                    os.setpriority(os.PRIO_PROCESS, int(thread), nice)
