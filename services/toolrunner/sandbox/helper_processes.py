"""Helper processes that the spawner forks to create namespaces: protocol and timeouts.

The spawner is single-threaded, so a helper that never answers would block every workspace. Each
wait has a timeout, after which the helper is killed. A helper is never in the pid namespace of a
workspace, whose processes could stop it.
"""

import errno
import os
import select
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

NUMBER = struct.Struct("=i")
GO = b"g"
#: Most helpers need a few milliseconds.
HELPER_S = 10.0


def forked(make: Callable[[socket.socket], None]) -> tuple[socket.socket, int]:
    """Fork a helper; return a channel to it whose timeout is `HELPER_S`."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        ours.close()
        in_child(theirs, lambda: make(theirs))
    theirs.close()
    ours.settimeout(HELPER_S)
    return ours, pid


# pyrefly: ignore[bad-return]  # It exits in `finally`, which Pyrefly does not follow.
def in_child(channel: socket.socket, make: Callable[[], None]) -> NoReturn:
    """Run a function, send the errno if the kernel refuses, and exit."""
    try:
        make()
    except OSError as error:
        with suppress(OSError):
            channel.send(NUMBER.pack(-(error.errno or errno.EIO)))
    finally:
        os._exit(0)


def heard(channel: socket.socket) -> int:
    """Return the number that a helper sends.

    Raises:
        OSError: The helper reported an error, exited, or took too long.
    """
    return heard_with(channel, 0)[0]


def heard_with(channel: socket.socket, descriptors_max: int) -> tuple[int, list[int]]:
    """Return the number that a helper sends, and the descriptors with it.

    Raises:
        OSError: The helper reported an error, exited, or took too long.
    """
    try:
        received, fds, _, _ = socket.recv_fds(channel, NUMBER.size, descriptors_max)
    except TimeoutError as error:
        raise OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from error
    number: int = NUMBER.unpack(received)[0] if len(received) == NUMBER.size else -errno.ECHILD
    if number < 0:
        for fd in fds:
            os.close(fd)
        raise OSError(-number, os.strerror(-number))
    return number, fds


def reap(pid: int, within_s: float = HELPER_S) -> None:
    """Reap a child; one that does not exit in time is killed.

    A child that the kernel still holds after that is reaped later with all other children.
    """
    pid_fd = os.pidfd_open(pid)
    try:
        for number in (0, signal.SIGKILL):
            if number:
                signal.pidfd_send_signal(pid_fd, number)
            if is_readable(pid_fd, within_s):
                os.waitpid(pid, 0)
                return
    finally:
        os.close(pid_fd)


def is_readable(fd: int, within_s: float) -> bool:
    """Return whether a descriptor becomes readable in time; `select` refuses numbers above 1023."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(within_s * 1000))


def kill(pid: int) -> None:
    """Kill a child that was not reaped, and reap it."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    with suppress(OSError):
        reap(pid)
