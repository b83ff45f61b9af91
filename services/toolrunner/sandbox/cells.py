"""The namespaces of a workspace: all its processes share them, and die with the first of them.

Theory: a workspace's commands must find one another, on loopback and by pid, so they share
namespaces. A first process holds these; it does nothing, and whatever its descendants leave
behind becomes its own. It dies with the spawner, and when it dies the kernel kills everything in
the namespace of processes at once, however often that forked or whatever it ignores.

Building the tree of files takes some fifty mounts, so it is built once for each kind of process
and entered by all others of that kind. A cell that nobody is in any more is kept for a while.
Whoever makes something here is forked, hands over the descriptors of what it made and ends; the
spawner itself never leaves its own namespaces. It only says, where it has the right to, in which
namespace of processes its next child is born. Elsewhere a child enters that by a child of its own,
which is one fork more of a program that is many times as large as what it becomes.
"""

import errno
import fcntl
import os
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

from toolrunner.sandbox.confinement import Confinement
from toolrunner.sandbox.mounts import Kind, build_tree, kind_of
from toolrunner.sandbox.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    call,
    clone_sibling,
    prctl,
    setns,
    unshare,
)
from toolrunner.sandbox.values import Layer, Network, Profile

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
HOST_NAME = b"workspace"
#: That of the user first: it gives the right to enter the others.
KINDS = ("user", "ipc", "uts", "pid", "net")
#: Of these the one that a process cannot enter itself.
BIRTH = KINDS.index("pid")
NUMBER = struct.Struct("=i")
GO = b"g"
DOOR_BACKLOG = 128
SHARED_MEMORY_PAGES = 64 * 1024 * 1024 // os.sysconf("SC_PAGE_SIZE")
TREES_MAX = 8
#: Making a cell takes longer than most commands, and one command follows another.
RESTING_S = 60.0
RESTING_MAX = 256


class Forked(NamedTuple):
    """A child: its pid here and 0 there, and whether it was born in a cell."""

    pid: int
    is_inside: bool


@dataclass
class Cell:
    """Namespaces, held open, and the process that began them.

    Attributes:
        first: Pid of that process, as the host counts.
        fds: The namespaces, in the order in which they are entered.
        door: A socket that listens inside, for the egress proxy, which is outside; -1 for none.
        trees: Mount namespaces, by the kind of process that uses them.
    """

    first: int
    fds: tuple[int, ...]
    door: int = -1
    trees: dict[Kind, int] = field(default_factory=dict)

    def enter(self, tree: int | None = None) -> int:
        """Leave for the cell with a new process; return its pid here and 0 there.

        Raises:
            OSError: The kernel refused; nobody is inside.
        """
        for fd in self.fds if tree is None else (*self.fds, tree):
            setns(fd)
        return clone_sibling(signal.SIGCHLD)

    def fork(self) -> Forked:
        """Fork a child that is born among the processes of the cell, where that is allowed.

        Raises:
            OSError: The kernel refused; there is no child.
            SystemExit: This process cannot go back to where its children belong.
        """
        own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            setns(self.fds[BIRTH], CLONE_NEWPID)
        except OSError:
            os.close(own)
            return Forked(os.fork(), is_inside=False)
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:
                _go_back(own)
            os.close(own)
        return Forked(pid, is_inside=True)

    def join(self, tree: int) -> None:
        """Enter the rest of the cell, for one who was born among its processes.

        Raises:
            OSError: The kernel refused.
        """
        for place, fd in enumerate((*self.fds, tree)):
            if place != BIRTH:
                setns(fd)

    def tree(self, confinement: Confinement) -> int:
        """Return the mount namespace for a kind of process, built if there is none yet.

        Raises:
            OSError: The kernel refused.
        """
        kind = kind_of(confinement)
        if kind not in self.trees:
            while len(self.trees) >= TREES_MAX:
                os.close(self.trees.pop(next(iter(self.trees))))
            self.trees[kind] = self._built(confinement)
        return self.trees[kind]

    def _built(self, confinement: Confinement) -> int:
        def make(channel: socket.socket) -> None:
            inside = self.enter()
            if inside == 0:
                _in_child(channel, lambda: _build(channel, confinement))
            channel.send(NUMBER.pack(inside))

        ours, pid = _forked(make)
        with ours:
            try:
                builder = _heard(ours)
                ours.send(GO)
                _, fds, _, _ = socket.recv_fds(ours, NUMBER.size, 1)
                if not fds:
                    raise OSError(errno.EIO, "the tree of files cannot be built")
            finally:
                os.waitpid(pid, 0)
            os.waitpid(builder, 0)
            return fds[0]

    def close(self, *, is_dead: bool = False) -> None:
        """Kill everything inside; whoever made the cell still has to reap its first process."""
        if not is_dead:
            with suppress(ProcessLookupError):
                os.kill(self.first, signal.SIGKILL)
        for fd in (*self.fds, *self.trees.values(), *((self.door,) if self.door >= 0 else ())):
            with suppress(OSError):
                os.close(fd)


class Key(NamedTuple):
    """Whose a cell is, and what all who share it have in common."""

    workspace: str
    network: Network
    profile: Profile | None  # None where processes of all profiles share it.


def key_of(workspace: str, confinement: Confinement) -> Key:
    """Return which cell a process belongs to.

    A process sees the files of another of its cell as that one does, by `/proc/PID/root`, and
    what one may only read the other may write. Landlock keeps those apart who were not confined
    together; without it only those who may write the same share a cell.
    """
    is_kept_apart = confinement.has(Layer.LANDLOCK_FILES)
    profile = None if is_kept_apart else confinement.profile
    return Key(workspace, confinement.network, profile)


@dataclass
class Cells:
    """The cells of all workspaces: one for each network that processes of a workspace have.

    Without Landlock each profile has its own.

    Attributes:
        on_door: Is told of each door that opens, with its workspace.
        resting: Workspaces in whose cells nobody is, and since when.
        dying: First processes of cells that were ended, with their workspaces, until they are
            reaped; the kernel keeps each until nobody is left inside.
    """

    cells: dict[Key, Cell] = field(default_factory=dict)
    on_door: Callable[[str, int], None] = field(default=lambda workspace, door: None)
    resting: dict[str, float] = field(default_factory=dict)
    dying: dict[int, str] = field(default_factory=dict)

    def show_doors(self) -> None:
        """Tell of every door once more."""
        for key, cell in self.cells.items():
            if cell.door >= 0:
                self.on_door(key.workspace, cell.door)

    @property
    def firsts(self) -> set[int]:
        """Pids of the first processes, which belong to nobody."""
        return {cell.first for cell in self.cells.values()}

    def dying_of(self, workspace: str) -> set[int]:
        """Return the first processes of a workspace's cells that were ended and are not gone."""
        return {first for first, owner in self.dying.items() if owner == workspace}

    def way(self, workspace: str, confinement: Confinement) -> "tuple[Cell, int]":
        """Return the cell for a process, and its tree, made if they are not there yet.

        Raises:
            OSError: The kernel refused.
        """
        self.resting.pop(workspace, None)
        key = key_of(workspace, confinement)
        if key not in self.cells:
            self.cells[key] = make_cell(confinement)
            if self.cells[key].door >= 0:
                self.on_door(workspace, self.cells[key].door)
        return self.cells[key], self.cells[key].tree(confinement)

    def of(self, workspace: str) -> list[Cell]:
        """Return the cells of a workspace."""
        return [cell for key, cell in self.cells.items() if key.workspace == workspace]

    def rest(self, workspace: str, now_s: float) -> None:
        """Keep the cells of a workspace, in which nobody is, for the next who comes soon."""
        self.resting.pop(workspace, None)
        if self.of(workspace):
            self.resting[workspace] = now_s
        while len(self.resting) > RESTING_MAX:
            self.end(next(iter(self.resting)))

    def end_rested(self, now_s: float) -> float | None:
        """End the cells in which nobody has been for long; return when the next have been."""
        while self.resting:
            workspace, since_s = next(iter(self.resting.items()))
            if since_s + RESTING_S > now_s:
                return since_s + RESTING_S
            self.end(workspace)
        return None

    def end(self, workspace: str) -> None:
        """Kill everything in the cells of a workspace."""
        self.resting.pop(workspace, None)
        for key in [key for key in self.cells if key.workspace == workspace]:
            cell = self.cells.pop(key)
            self.dying[cell.first] = workspace
            cell.close()

    def end_all(self) -> None:
        """Kill everything in all cells."""
        for workspace in {key.workspace for key in self.cells}:
            self.end(workspace)

    def lose(self, pid: int) -> None:
        """Note a death; a cell whose first process died is no more."""
        self.dying.pop(pid, None)
        for key in [key for key, cell in self.cells.items() if cell.first == pid]:
            self.cells.pop(key).close(is_dead=True)


def make_cell(confinement: Confinement) -> Cell:
    """Make namespaces for the processes of a workspace.

    Raises:
        OSError: The kernel refused; nothing is left.
    """
    is_apart = confinement.has(Layer.NETWORK_NAMESPACE)
    port = confinement.proxy_port if is_apart else 0
    ours, pid = _forked(lambda channel: _begin(channel, is_apart=is_apart, port=port))
    first = 0
    with ours:
        try:
            _heard(ours)
            _map(pid, confinement.uid)
            ours.send(GO)
            first = _heard(ours)
            # Only now: two who speak at once are heard in any order.
            ours.send(GO)
            data, fds, _, _ = socket.recv_fds(ours, NUMBER.size, len(KINDS) + 1)
            if not data or not fds:
                raise OSError(errno.ECHILD, "the first process ended")
        except OSError:
            if first:
                with suppress(OSError):
                    os.kill(first, signal.SIGKILL)
                    os.waitpid(first, 0)
            raise
        finally:
            ours.shutdown(socket.SHUT_WR)
            os.waitpid(pid, 0)
    return Cell(first, tuple(fds[:-1]), fds[-1]) if port else Cell(first, tuple(fds))


def _go_back(own: int) -> None:
    """Have the next children born where they belong."""
    try:
        setns(own, CLONE_NEWPID)
    except OSError as error:
        raise SystemExit(f"children would be born in a cell from now on: {error}") from error


def _forked(make: Callable[[socket.socket], None]) -> tuple[socket.socket, int]:
    """Fork a maker with a channel to it."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        _in_child(theirs, lambda: make(theirs))
    theirs.close()
    return ours, pid


def _in_child(channel: socket.socket, make: Callable[[], None]) -> NoReturn:
    """Do something, say what the kernel said if it refuses, and end."""
    try:
        make()
    except OSError as error:
        with suppress(OSError):
            channel.send(NUMBER.pack(-(error.errno or errno.EIO)))
    finally:
        os._exit(0)


def _heard(channel: socket.socket) -> int:
    """Return the number that a maker says; one below 0 is an error, and so is silence."""
    said = channel.recv(NUMBER.size)
    number: int = NUMBER.unpack(said)[0] if len(said) == NUMBER.size else -errno.ECHILD
    if number < 0:
        raise OSError(-number, os.strerror(-number))
    return number


def _map(pid: int, uid: int) -> None:
    """Give the users inside their numbers outside, which are the same."""
    users = {os.geteuid()} | ({uid} if uid >= 0 else set())
    groups = {os.getegid()} | ({uid} if uid >= 0 else set())
    if os.geteuid() != 0:
        _write(f"/proc/{pid}/setgroups", "deny")
    _write(f"/proc/{pid}/uid_map", "".join(f"{each} {each} 1\n" for each in sorted(users)))
    _write(f"/proc/{pid}/gid_map", "".join(f"{each} {each} 1\n" for each in sorted(groups)))


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _begin(channel: socket.socket, *, is_apart: bool, port: int) -> None:
    """Make the namespaces and leave a first process in them."""
    # Only what can be dumped belongs to its user, who is to say which users are inside.
    prctl(PR_SET_DUMPABLE, 1)
    flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS
    unshare(flags | CLONE_NEWNET if is_apart else flags)
    channel.send(NUMBER.pack(0))
    if not channel.recv(1):
        return
    prctl(PR_SET_DUMPABLE, 0)
    call("sethostname", HOST_NAME, len(HOST_NAME))
    with suppress(OSError):
        # Memory that lies in the kernel is no process's, so that nobody could be ended for it.
        _write("/proc/sys/kernel/shmall", str(SHARED_MEMORY_PAGES))
    doors: list[socket.socket] = []
    if is_apart:
        _raise_loopback()
    if port:
        # A socket stays in the network that it was made in, whoever accepts from it.
        doors.append(socket.create_server(("127.0.0.1", port), backlog=DOOR_BACKLOG))
    first = clone_sibling(signal.SIGCHLD)
    if first == 0:
        _in_child(channel, lambda: _hold(channel, doors, is_apart=is_apart))
    channel.send(NUMBER.pack(first))


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface:
        request = struct.pack("=16sH22x", b"lo", 0)
        flags = struct.unpack_from("=H", fcntl.ioctl(interface, SIOCGIFFLAGS, request), 16)[0]
        fcntl.ioctl(interface, SIOCSIFFLAGS, struct.pack("=16sH22x", b"lo", flags | IFF_UP))


def _hold(channel: socket.socket, doors: list[socket.socket], *, is_apart: bool) -> NoReturn:
    """Be the first process of a cell until the spawner ends."""
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
    kinds = KINDS if is_apart else KINDS[:-1]
    fds = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    fds += [door.fileno() for door in doors]
    os.chdir("/")
    if not channel.recv(1):
        os._exit(1)
    socket.send_fds(channel, [NUMBER.pack(0)], fds)
    # The maker hangs up when it has heard; a maker that is gone does so too.
    channel.recv(1)
    os.closerange(0, 2**31 - 1)
    # With SIGCHLD ignored the kernel reaps for us.
    while True:
        signal.pause()


def _build(channel: socket.socket, confinement: Confinement) -> None:
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    # Before the host's /proc is gone.
    links = os.open("/proc/self/ns", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    if not channel.recv(1):
        return
    build_tree(confinement)
    fd = os.open("mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=links)
    socket.send_fds(channel, [NUMBER.pack(0)], [fd])
