"""The namespace sets of workspaces: all processes of a set die with its first process.

Theory: a workspace's commands must reach one another, on loopback and by pid, so they share
namespaces. A first process holds these; it does nothing, and orphaned descendants become its
children. It dies with the spawner, and when it dies the kernel kills all processes in its pid
namespace at once, however often they fork and whichever signals they ignore.

Building the mount tree takes some fifty mounts, so it is built once for each kind of process and
entered by all others of that kind. A namespace set without processes is kept for a while. Each
object here is created by a forked helper, which sends the descriptors and exits; the spawner itself
never leaves its own namespaces. It only sets, where it is permitted to, the pid namespace of its
next child. Elsewhere a child enters that by another fork, of a program that is many times as large
as the command.

Of all code that Parley runs between fork and exec, only the first process and the child that
executes the command are ever in the pid namespace of a workspace, whose commands may have the same
user and stop every process that they see. The first process cannot be signalled from inside. It
mounts the `/proc` of the workspace before any command runs, and every tree gets a copy of that
mount, so trees are built from outside.
"""

import errno
import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from toolrunner.sandbox.confinement import Confinement
from toolrunner.sandbox.helper_processes import (
    GO,
    NUMBER,
    forked,
    heard,
    heard_with,
    kill,
    reap,
)
from toolrunner.sandbox.mounts import Kind, build_tree, kind_of, taken_proc
from toolrunner.sandbox.namespace_setup import KINDS, NamespacePlan, map_users, start_namespaces
from toolrunner.sandbox.socket_diag import SocketUse, socket_use
from toolrunner.sandbox.syscalls import (
    CAP_SYS_ADMIN,
    CLONE_NEWPID,
    PR_SET_PDEATHSIG,
    clone_sibling,
    has_capability,
    prctl,
    setns,
)
from toolrunner.sandbox.user_limits import Limits, UserLimits
from toolrunner.sandbox.values import Layer, Network, Profile

#: The namespace that a process cannot enter itself, only its children.
BIRTH = KINDS.index("pid")
USER, OBJECTS = KINDS.index("user"), KINDS.index("ipc")
TREES_MAX = 8
#: Creating a namespace set takes longer than most commands, and one command follows another.
IDLE_S = 60.0
IDLE_MAX = 256


class Forked(NamedTuple):
    """A child: its pid in the parent and 0 in the child, and whether it is in the pid namespace."""

    pid: int
    is_inside: bool


@dataclass
class NamespaceSet:
    """Open namespaces, and their first process.

    Attributes:
        first: Pid of that process, in the host's pid namespace.
        fds: The namespaces, in the order in which they are entered.
        listener: A socket that listens inside, for the egress proxy, which is outside; -1 for none.
        outer: The user namespace around that of the processes; -1 for none.
        proc: A mount namespace that contains only the `/proc` of the set; -1 for none.
        diag: A sock_diag socket of its network namespace; -1 for none.
        limits: The limits of its processes on resources that the kernel counts per user.
        trees: Mount namespaces, by the kind of process that uses them.
    """

    first: int
    fds: tuple[int, ...]
    outer: int = -1
    listener: int = -1
    proc: int = -1
    diag: int = -1
    limits: Limits = field(default_factory=dict)
    trees: dict[Kind, int] = field(default_factory=dict)

    def enter(self, tree: int) -> int:
        """Enter the namespaces with a new process; return its pid outside and 0 inside.

        Raises:
            OSError: The kernel refused; no process is inside.
        """
        for fd in (*self._ways, tree):
            setns(fd)
        return clone_sibling(signal.SIGCHLD)

    @property
    def _ways(self) -> tuple[int, ...]:
        """The namespaces in an order in which each gives the permission to enter the next."""
        if self.outer < 0:
            return self.fds
        objects, own = self.fds[OBJECTS], self.fds[USER]
        return (self.outer, objects, own, *(fd for fd in self.fds if fd not in (objects, own)))

    def fork(self) -> Forked:
        """Fork a child into the pid namespace, where that is permitted.

        Raises:
            OSError: The kernel refused; there is no child.
            SystemExit: This process cannot restore the pid namespace of its children.
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
        """Enter the remaining namespaces, for a process that was forked into the pid namespace.

        Raises:
            OSError: The kernel refused.
        """
        for fd in (*self._ways, tree):
            if fd != self.fds[BIRTH]:
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
        proc = -1
        if confinement.has_own_proc:
            if self.proc < 0:
                raise OSError(errno.EPERM, "/proc cannot be mounted")
            proc = self._made(lambda channel: _take_proc(channel, self.proc))
        try:
            return self._made(lambda channel: _build(channel, confinement, proc))
        finally:
            if proc >= 0:
                os.close(proc)

    def _made(self, make: Callable[[socket.socket], None]) -> int:
        """Return the descriptor that a helper sends, which runs as root of the user namespace.

        The helper stays outside of the pid namespace.
        """

        def begin(channel: socket.socket) -> None:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            setns(self.fds[USER])
            make(channel)

        ours, pid = forked(begin)
        with ours:
            try:
                _, fds = heard_with(ours, 1)
            finally:
                reap(pid)
        if not fds:
            raise OSError(errno.EIO, "the tree of files cannot be built")
        return fds[0]

    def socket_use(self) -> SocketUse:
        """Return the memory use of the sockets in its network namespace; empty if it has none."""
        if self.diag < 0:
            return SocketUse()
        own = os.dup(self.diag)
        try:
            diag = socket.socket(fileno=own)
        except OSError:
            # This kernel does not support sock_diag.
            os.close(own)
            return SocketUse()
        with diag:
            return socket_use(diag)

    def close(self, *, is_dead: bool = False) -> None:
        """Kill all processes inside; the caller still has to reap the first process."""
        if not is_dead:
            with suppress(ProcessLookupError):
                os.kill(self.first, signal.SIGKILL)
        others = [fd for fd in (self.outer, self.listener, self.proc, self.diag) if fd >= 0]
        for fd in (*self.fds, *self.trees.values(), *others):
            with suppress(OSError):
                os.close(fd)


class Key(NamedTuple):
    """Identifies a namespace set by the properties that its processes share."""

    workspace: str
    network: Network
    profile: Profile | None  # None where processes of all profiles that may write share it.


def key_of(workspace: str, confinement: Confinement) -> Key:
    """Return which namespace set a process belongs to.

    A process can access the files of another one in its set as that one does, by `/proc/PID/root`,
    and write what it may only read itself. Landlock separates processes that were not confined
    together; without it only processes with the same profile share a set. Those that may only read
    have one of their own in any case: on the loopback and in the pid namespace of others they could
    have another process write for them.
    """
    is_kept_apart = confinement.has(Layer.LANDLOCK_FILES)
    may_write = confinement.profile is not Profile.READ_ONLY
    profile = None if is_kept_apart and may_write else confinement.profile
    return Key(workspace, confinement.network, profile)


@dataclass
class NamespaceSets:
    """The namespace sets of all workspaces: one for each network mode that a workspace uses.

    Processes that may only read have their own; without Landlock each profile has.

    Attributes:
        on_listener: Called with the workspace and each listener that is created.
        idle: Workspaces whose namespace sets have no processes, and since when.
        dying: First processes of ended namespace sets, with their workspaces, until they are
            reaped; the kernel keeps each until no process is left inside.
        user_limits: The budget of resources that the kernel counts per user.
    """

    sets: dict[Key, NamespaceSet] = field(default_factory=dict)
    on_listener: Callable[[str, int], None] = field(default=lambda workspace, listener: None)
    idle: dict[str, float] = field(default_factory=dict)
    dying: dict[int, str] = field(default_factory=dict)
    user_limits: UserLimits = field(default_factory=UserLimits)

    def show_listeners(self) -> None:
        """Call `on_listener` again for every listener."""
        for key, namespace_set in self.sets.items():
            if namespace_set.listener >= 0:
                self.on_listener(key.workspace, namespace_set.listener)

    @property
    def firsts(self) -> set[int]:
        """Pids of the first processes, which belong to no command."""
        return {namespace_set.first for namespace_set in self.sets.values()}

    def dying_of(self, workspace: str) -> set[int]:
        """Return the first processes of a workspace's ended namespace sets that are not reaped."""
        return {first for first, owner in self.dying.items() if owner == workspace}

    def provide(self, workspace: str, confinement: Confinement) -> "tuple[NamespaceSet, int]":
        """Return the namespace set and the mount tree for a process, created if needed.

        Raises:
            OSError: The kernel refused.
        """
        self.idle.pop(workspace, None)
        key = key_of(workspace, confinement)
        if key not in self.sets:
            has_own_user = owner_of(confinement) >= 0
            limits = self.user_limits.offer(has_own_user=has_own_user)
            namespace_set = self.sets[key] = make_namespaces(confinement, limits)
            self.user_limits.give(namespace_set.first, limits, has_own_user=has_own_user)
            if self.sets[key].listener >= 0:
                self.on_listener(workspace, self.sets[key].listener)
        return self.sets[key], self.sets[key].tree(confinement)

    def of(self, workspace: str) -> list[NamespaceSet]:
        """Return the namespace sets of a workspace."""
        return [
            namespace_set for key, namespace_set in self.sets.items() if key.workspace == workspace
        ]

    def rest(self, workspace: str, now_s: float) -> None:
        """Mark the namespace sets of a workspace as idle; they are kept for the next process."""
        self.idle.pop(workspace, None)
        if self.of(workspace):
            self.idle[workspace] = now_s
        while len(self.idle) > IDLE_MAX:
            self.end(next(iter(self.idle)))

    def end_rested(self, now_s: float) -> float | None:
        """End the sets that have been idle for long; return when the next ones expire."""
        while self.idle:
            workspace, since_s = next(iter(self.idle.items()))
            if since_s + IDLE_S > now_s:
                return since_s + IDLE_S
            self.end(workspace)
        return None

    def end(self, workspace: str) -> None:
        """Kill all processes in the namespace sets of a workspace."""
        self.idle.pop(workspace, None)
        for key in [key for key in self.sets if key.workspace == workspace]:
            namespace_set = self.sets.pop(key)
            self.dying[namespace_set.first] = workspace
            namespace_set.close()

    def end_all(self) -> None:
        """Kill all processes in all namespace sets."""
        for workspace in {key.workspace for key in self.sets}:
            self.end(workspace)

    def lose(self, pid: int) -> None:
        """Handle an exit; a namespace set whose first process exited is removed."""
        self.dying.pop(pid, None)
        self.user_limits.take_back(pid)
        for key in [key for key, namespace_set in self.sets.items() if namespace_set.first == pid]:
            self.sets.pop(key).close(is_dead=True)


def owner_of(confinement: Confinement) -> int:
    """Return the user who can own the namespaces of a workspace; -1 for that of the service.

    Only a process with CAP_SYS_ADMIN on the host can enter namespaces of another user.
    """
    return confinement.uid if has_capability(CAP_SYS_ADMIN) else -1


def make_namespaces(confinement: Confinement, limits: Limits | None = None) -> NamespaceSet:
    """Create namespaces for the processes of a workspace.

    Args:
        confinement: How they are confined.
        limits: Their limits on resources that the kernel counts per user; None for no limits.

    Raises:
        OSError: The kernel refused; nothing is left.
    """
    plan = NamespacePlan(
        is_apart=confinement.has(Layer.NETWORK_NAMESPACE),
        port=confinement.proxy_port if confinement.has(Layer.NETWORK_NAMESPACE) else 0,
        has_own_proc=confinement.has_own_proc,
        owner=owner_of(confinement),
        has_outer=os.geteuid() != 0,
        limits=limits,
    )
    ours, pid = forked(lambda channel: start_namespaces(channel, plan))
    first = 0
    with ours:
        try:
            heard(ours)
            map_users(pid, confinement.uid)
            ours.send(GO)
            first = heard(ours)
            # Only now: messages of two senders arrive in any order.
            ours.send(GO)
            _, fds = heard_with(ours, len(KINDS) + 4)
            if not fds:
                raise OSError(errno.ECHILD, "the first process ended")
        except OSError:
            if first:
                kill(first)
            raise
        finally:
            ours.shutdown(socket.SHUT_WR)
            reap(pid)
    count = len(KINDS) if plan.is_apart else len(KINDS) - 1
    namespaces, others = fds[:count], fds[count:]
    # In this order, as far as they exist.
    outer = others.pop(0) if plan.has_outer else -1
    diag = others.pop(0) if plan.is_apart else -1
    listener = others.pop(0) if plan.port else -1
    proc = others.pop(0) if others else -1
    return NamespaceSet(first, tuple(namespaces), outer, listener, proc, diag, limits or {})


def _go_back(own: int) -> None:
    """Restore the pid namespace of the next children."""
    try:
        setns(own, CLONE_NEWPID)
    except OSError as error:
        raise SystemExit(
            f"children would be born in a namespace set from now on: {error}"
        ) from error


def _take_proc(channel: socket.socket, namespace: int) -> None:
    setns(namespace)
    socket.send_fds(channel, [NUMBER.pack(0)], [taken_proc()])


def _build(channel: socket.socket, confinement: Confinement, proc: int) -> None:
    # Before the host's /proc is unmounted.
    links = os.open("/proc/self/ns", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    build_tree(confinement, proc)
    fd = os.open("mnt", os.O_RDONLY | os.O_CLOEXEC, dir_fd=links)
    socket.send_fds(channel, [NUMBER.pack(0)], [fd])
