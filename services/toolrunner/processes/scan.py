"""Who uses how much: all processes that the spawner started, by the workspace they belong to.

Theory: whoever is below the first process of a command is that command's. Whoever was left behind
by one is known by the workspace's user, by the namespace of processes that it cannot leave, or by
the mark that it cannot take off.
Looking takes some twenty microseconds for each process, in a thread that all others wait for now
and then. So those below the spawner are asked for their children and nobody else is looked at,
unless there are so many of them that it is less to look at everybody.
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
#: Where /proc tells what, counted from what follows the name.
STATE, PARENT, GROUP, SESSION, TIMES, THREADS, STARTED, RESIDENT = (
    *(0, 1, 2, 3),
    slice(11, 15),
    *(17, 19, 21),
)
DEAD: Final = (b"Z", b"X")
#: More than the kernel has to say of one.
STAT_BYTES: Final = 4096
#: Asking a process for its children takes about as long as looking at so many.
ASKING: Final = 2
#: What a pipe may hold when its user has many of them; the first some hundred may hold more.
PIPE_BYTES: Final = 8192
PIPE_PREFIX: Final = "pipe:["
SOCKET_PREFIX: Final = "socket:["


@dataclass(frozen=True, slots=True)
class Member:
    """A process of a workspace.

    Attributes:
        seen: The process itself.
        process_id: The command it belongs to; empty if that left it behind.
        cpu_s: Processor time that it and those it waited for have used.
        resident_bytes: Memory it has, what it shares with others included.
    """

    seen: Seen
    process_id: ProcessId
    cpu_s: float
    resident_bytes: int


@dataclass(frozen=True, slots=True)
class Leader:
    """The first process of a command that runs."""

    workspace_id: WorkspaceId
    process_id: ProcessId


Members = Mapping[WorkspaceId, tuple[Member, ...]]


@dataclass
class ProcessScan:
    """Counts the processes below a spawner.

    Attributes:
        spawner_pid: The spawner.
        workspaces_by_user: Tells whose the users are; asked only when somebody is unknown.
        workspaces_by_mark: Tells whose the marks are; asked only when one is unknown.
        proc: Where the kernel tells of processes.
    """

    spawner_pid: int
    workspaces_by_user: Callable[[], Mapping[int, WorkspaceId]]
    workspaces_by_mark: Callable[[], Mapping[int, WorkspaceId]] = dict
    proc: str = "/proc"
    _namespaces: dict[str, WorkspaceId] = field(default_factory=dict)
    _known: dict[int, str] = field(default_factory=dict)
    _marks: dict[int, WorkspaceId | None] = field(default_factory=dict)

    def take(self, leaders: Mapping[int, Leader]) -> Members:
        """Return all processes of workspaces, given the first ones of commands by their pids."""
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
        """Return who is below the spawner, or all there are if that is less to do."""
        everybody = [int(name) for name in os.listdir(self.proc) if name.isdecimal()]
        below = self._below(len(everybody) // ASKING)
        looked_at = map(self._looked_at, everybody if below is None else below)
        return [member for member in looked_at if member is not None]

    def _below(self, asked_max: int) -> list[int] | None:
        """Return those below the spawner; None if too many have to be asked, or none can be."""
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
        """Return the pages of a process whose first thread ended, which then tells of none."""
        for thread in os.listdir(f"{self.proc}/{pid}/task"):
            stat = f"{self.proc}/{pid}/task/{thread}/stat"
            with suppress(OSError, IndexError), open(stat, "rb", buffering=0) as file:
                words = words_of(file.read(STAT_BYTES))
                if words[STATE] not in DEAD:
                    return words[RESIDENT]
        return b"0"

    def _line(self, pid: int, found: Mapping[int, Member]) -> list[int] | None:
        """Return a process and those above it, up to the spawner; None if it is not below it."""
        line: list[int] = []
        while pid in found:
            line.append(pid)
            pid = found[pid].seen.parent
            if pid == self.spawner_pid:
                return line
        return None

    def _learn(self, leaders: Mapping[int, Leader], found: Mapping[int, Member]) -> None:
        """Note in which namespace the commands of a workspace are."""
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
            # Those of the node's own programs are of no workspace.
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
    """Return the memory of a process, of what it shares its part; all of it if nobody says."""
    with suppress(OSError, ValueError), open(f"/proc/{member.seen.pid}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return member.resident_bytes


@dataclass(frozen=True, slots=True)
class Unmapped:
    """Memory that processes hold by descriptors without having it mapped, by pid.

    Attributes:
        own_bytes: Files in memory and pipes.
        socket_bytes: What lies in the buffers of sockets, as far as it is known of each.
    """

    own_bytes: dict[int, int] = field(default_factory=dict)
    socket_bytes: dict[int, int] = field(default_factory=dict)


def unmapped_by(members: tuple[Member, ...], sockets: Mapping[int, int]) -> Unmapped:
    """Return what processes hold; what several hold is counted for the first.

    Args:
        members: The processes.
        sockets: What sockets have in their buffers, by inode.
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
    """Return how many descriptors processes may have open, without looking at each."""
    slots = 0
    for member in members:
        with suppress(OSError, ValueError), open(f"/proc/{member.seen.pid}/status") as file:
            found = next((line for line in file if line.startswith("FDSize:")), "FDSize: 0")
            slots += int(found.split()[1])
    return slots


def set_nice(member: Member, nice: int) -> None:
    """Have all threads of a process give way so much to others, where that is allowed.

    Not the idle class: whoever is killed, or holds what others wait for, has to get to its end.
    """
    with suppress(OSError):
        for thread in os.listdir(f"/proc/{member.seen.pid}/task"):
            with suppress(OSError):
                if os.getpriority(os.PRIO_PROCESS, int(thread)) != nice:
                    os.setpriority(os.PRIO_PROCESS, int(thread), nice)
