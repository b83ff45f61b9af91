"""Creation of the namespaces of a workspace in a helper: user, network, IPC, and their limits.

The helper leaves the first process in them, which holds them until the spawner exits.

Only the root of a user namespace may limit the IPC objects in it, and the processes of an
unprivileged user keep their uid, which is not 0. There the IPC namespace belongs to an outer user
namespace, in which the helper is root for a moment, around that of the processes.
"""

import fcntl
import os
import signal
import socket
import struct
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn

from toolrunner.sandbox.helper_processes import NUMBER, in_child
from toolrunner.sandbox.mounts import mount_proc_alone
from toolrunner.sandbox.socket_diag import open_diag
from toolrunner.sandbox.syscalls import (
    CLONE_NEWIPC,
    CLONE_NEWNET,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    CLONE_NEWUTS,
    NO_SETUID_FIXUP,
    PR_SET_DUMPABLE,
    PR_SET_PDEATHSIG,
    PR_SET_SECUREBITS,
    call,
    clone_sibling,
    prctl,
    unshare,
)
from toolrunner.sandbox.user_limits import Limits, bound_namespace

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
HOST_NAME = b"workspace"
#: The user namespace first: it gives the permission to enter the others.
KINDS = ("user", "ipc", "uts", "pid", "net")
LISTENER_BACKLOG = 128
#: Kernel memory of IPC objects belongs to no process, so that no process could be killed for it:
#: shared memory in pages, queues and their bytes, and semaphores (per set, in total, per call,
#: sets).
KERNEL_OBJECTS = {
    "/proc/sys/kernel/shmall": str(64 * 1024 * 1024 // os.sysconf("SC_PAGE_SIZE")),
    "/proc/sys/kernel/msgmni": "256",
    "/proc/sys/kernel/msgmnb": "65536",
    "/proc/sys/kernel/sem": "1024 65536 128 1024",
}


@dataclass(frozen=True)
class NamespacePlan:
    """Parameters of the helper that creates a namespace set.

    Attributes:
        is_apart: Whether it has its own network namespace.
        port: The port of the egress proxy inside; 0 for none.
        has_own_proc: Whether it gets a `/proc`.
        owner: The user who shall own the user namespace; -1 for that of the service.
        has_outer: Whether there is a user namespace around that of the processes.
        limits: The limits of its processes on resources that the kernel counts per user.
    """

    is_apart: bool
    port: int
    has_own_proc: bool
    owner: int
    has_outer: bool
    limits: Limits | None


def map_users(pid: int, uid: int) -> None:
    """Map each user inside to the same uid outside.

    An unprivileged user is root at first; see `_begin_inner`.
    """
    own, own_group = os.geteuid(), os.getegid()
    if own != 0:
        _write(f"/proc/{pid}/setgroups", "deny")
        _write(f"/proc/{pid}/uid_map", f"0 {own} 1\n")
        _write(f"/proc/{pid}/gid_map", f"0 {own_group} 1\n")
        return
    users = sorted({own} | ({uid} if uid >= 0 else set()))
    groups = sorted({own_group} | ({uid} if uid >= 0 else set()))
    _write(f"/proc/{pid}/uid_map", "".join(f"{each} {each} 1\n" for each in users))
    _write(f"/proc/{pid}/gid_map", "".join(f"{each} {each} 1\n" for each in groups))


def _write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def start_namespaces(channel: socket.socket, plan: NamespacePlan) -> None:
    """Create the namespaces and leave a first process in them."""
    own, own_group = os.geteuid(), os.getegid()
    if plan.owner >= 0:
        _act_as(plan.owner)
    # The files in /proc of a dumpable process belong to its user, who writes the uid map.
    prctl(PR_SET_DUMPABLE, 1)
    inner = CLONE_NEWPID | CLONE_NEWUTS | (CLONE_NEWNET if plan.is_apart else 0)
    unshare(CLONE_NEWUSER | CLONE_NEWIPC | (0 if plan.has_outer else inner))
    channel.send(NUMBER.pack(0))
    if not channel.recv(1):
        return
    if plan.owner >= 0:
        os.seteuid(own)
    for path, text in KERNEL_OBJECTS.items():
        # Some kernels let only the host's root write these.
        with suppress(OSError):
            _write(path, text)
    held: list[int] = []
    if plan.has_outer:
        held.append(os.open("/proc/self/ns/user", os.O_RDONLY | os.O_CLOEXEC))
        _begin_inner(inner, own, own_group)
    prctl(PR_SET_DUMPABLE, 0)
    call("sethostname", HOST_NAME, len(HOST_NAME))
    if plan.limits is not None:
        # Where that is refused, the probe and the report of the node contain it.
        with suppress(OSError):
            bound_namespace(plan.limits)
    if plan.is_apart:
        _raise_loopback()
        held.append(_diag())
    if plan.port:
        # A socket stays in the network namespace it was created in, whichever process accepts.
        listener = socket.create_server(("127.0.0.1", plan.port), backlog=LISTENER_BACKLOG)
        held.append(listener.detach())
    first = clone_sibling(signal.SIGCHLD)
    if first == 0:
        in_child(channel, lambda: _hold(channel, held, plan))
    channel.send(NUMBER.pack(first))


def _begin_inner(flags: int, own: int, own_group: int) -> None:
    """Create the user namespace of the processes, which maps them to their uid outside."""
    unshare(CLONE_NEWUSER | flags)
    _write("/proc/self/uid_map", f"{own} 0 1\n")
    _write("/proc/self/gid_map", f"{own_group} 0 1\n")


def _act_as(user: int) -> None:
    """Create later namespaces as a user, and keep all capabilities."""
    prctl(PR_SET_SECUREBITS, NO_SETUID_FIXUP)
    os.seteuid(user)


def _diag() -> int:
    """Return a sock_diag socket of this network namespace; /dev/null where it is unsupported."""
    with suppress(OSError):
        return open_diag().detach()
    return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)


def _raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface:
        request = struct.pack("=16sH22x", b"lo", 0)
        flags = struct.unpack_from("=H", fcntl.ioctl(interface, SIOCGIFFLAGS, request), 16)[0]
        fcntl.ioctl(interface, SIOCSIFFLAGS, struct.pack("=16sH22x", b"lo", flags | IFF_UP))


def _hold(channel: socket.socket, held: list[int], plan: NamespacePlan) -> NoReturn:
    """Run as the first process of a namespace set until the spawner exits.

    The descriptors are sent to the spawner first.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    os.setsid()
    for number in range(1, signal.NSIG):
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            with suppress(OSError, ValueError):
                signal.signal(number, signal.SIG_IGN)
    kinds = KINDS if plan.is_apart else KINDS[:-1]
    fds = [os.open(f"/proc/self/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC) for kind in kinds]
    fds += held
    if plan.has_own_proc:
        # Where it cannot be mounted there is none, and processes that need it are refused.
        with suppress(OSError):
            mount_proc_alone()
            fds.append(os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC))
    os.chdir("/")
    if not channel.recv(1):
        os._exit(1)
    socket.send_fds(channel, [NUMBER.pack(0)], fds)
    # The spawner closes the channel when it has received this, or when it has exited.
    channel.recv(1)
    os.closerange(0, 2**31 - 1)
    # With SIGCHLD ignored the kernel reaps the children.
    while True:
        signal.pause()
