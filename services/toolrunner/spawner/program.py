"""The spawner program: startup, the socket for adoption by the next service, and shutdown.

Theory: forking a process that has threads, as a gRPC server does, copies locks that no thread will
release. So the service starts this program first and sends it requests over a socket, in frames of
a length and JSON; descriptors are sent with the answers. It is the child subreaper of all processes
that it started, so it reaps every exit, and ECHILD from `waitpid` means that no process is left.

It keeps the descriptors and the exit statuses of processes until the service sends `forget`. When
the socket reaches EOF without `quit`, the service was killed: then this program waits for the next
service, which connects to a socket in the data directory and adopts all kept processes. If none
connects in time, or on `quit`, it kills all processes and exits.
"""

import os
import resource
import selectors
import signal
import socket
import sys
from contextlib import suppress

from toolrunner.spawner.adoption import AdoptionSocket
from toolrunner.spawner.child import STOP_SIGNALS
from toolrunner.spawner.children import ChildProcesses
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.control_groups_v1 import ControlGroupsV1
from toolrunner.spawner.frames import FrameChannel
from toolrunner.spawner.kernel import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    end_descendants,
    open_directory_beneath,
    prctl,
)
from toolrunner.spawner.process_index import ProcessIndex
from toolrunner.spawner.session import SpawnerSession

SOCKET_NAME = "spawner.sock"
SECRET_NAME = "spawner.secret"
SECRET_BYTES = 32
OPEN_FILES_MAX = 65536
#: Programs expect at least this many.
OPEN_FILES_LEAST = 1024


def socket_path(directory: int) -> str:
    """Return the socket path via /proc/self/fd; the real path may exceed the length limit."""
    return f"/proc/self/fd/{directory}/{SOCKET_NAME}"


def group_name(directory: int) -> str:
    """Return the name of the control group of all processes that are started for a directory.

    Only one service uses the directory, so the next one finds the remaining processes.
    """
    place = os.fstat(directory)
    return f"parley-{place.st_dev}-{place.st_ino}"


def listening(directory: int) -> socket.socket | None:
    """Listen in a directory, where a previous spawner may have left its socket.

    Not every file system supports sockets; on such a one processes do not outlive the service.
    """
    with suppress(FileNotFoundError):
        os.unlink(SOCKET_NAME, dir_fd=directory)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(socket_path(directory))
        listener.listen()
    except OSError as error:
        print(f"processes here cannot outlive the service: {error}", file=sys.stderr)
        listener.close()
        return None
    listener.setblocking(False)
    return listener


def new_secret(directory: int) -> str:
    """Generate the adoption secret, and store it in a file that only our user can read.

    Raises:
        OSError: It cannot be stored there.
    """
    secret = os.urandom(SECRET_BYTES).hex()
    with suppress(FileNotFoundError):
        os.unlink(SECRET_NAME, dir_fd=directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open(os.open(SECRET_NAME, flags, 0o600, dir_fd=directory), "w") as file:
        file.write(secret)
    return secret


def kept_secret(directory: int) -> str:
    """Return the adoption secret that a spawner stored; empty if there is none of our user."""
    with suppress(OSError, ValueError):
        fd = os.open(SECRET_NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
        with open(fd) as file:
            if os.fstat(fd).st_uid == os.getuid():
                return file.read(2 * SECRET_BYTES)
    return ""


def adoption_socket_in(directory: int, selector: selectors.BaseSelector) -> AdoptionSocket | None:
    """Create the adoption socket in a directory, where that is possible."""
    listener = listening(directory)
    if listener is None:
        return None
    try:
        return AdoptionSocket(listener, new_secret(directory), selector)
    except OSError as error:
        print(f"processes here cannot outlive the service: {error}", file=sys.stderr)
        listener.close()
        return None


def files_of_children(had: tuple[int, int], own: int) -> tuple[int, int]:
    """Return the limits on open files that children get.

    The kernel counts the descriptors in flight over sockets of all processes of a user, and refuses
    a sender whose limit is below that. So this program, which sends them, has twice the limit of
    its children.

    Args:
        had: The soft and hard limits that this program was started with.
        own: The soft limit that it has now.
    """
    most = max(own // 2, min(own, OPEN_FILES_LEAST))
    soft, hard = (most if each == resource.RLIM_INFINITY else min(each, most) for each in had)
    return soft, hard


def main() -> None:
    """Serve the inherited socket; on exit no process is left."""
    channel_fd, directory_fd, adoption_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)
    # The service decides when to exit, also when the whole process group gets a signal. Handlers
    # that do nothing, because ignored signals would stay ignored in all children.
    for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, lambda number, stack: None)
    wakeup_fd, wakeup_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
    # Every child needs this; the cost of the first call is paid here, once.
    os.close(open_directory_beneath("/", "."))
    channel = socket.socket(fileno=channel_fd)
    channel.set_inheritable(False)
    os.set_inheritable(directory_fd, False)
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = open_files[1] if open_files[1] != resource.RLIM_INFINITY else OPEN_FILES_MAX
    own_files = min(hard, OPEN_FILES_MAX)
    resource.setrlimit(resource.RLIMIT_NOFILE, (own_files, open_files[1]))
    name = group_name(directory_fd)
    has_groups = bool(int(sys.argv[4]))
    groups = ControlGroups.made(name) if has_groups else ControlGroups("")
    control_groups_v1 = (
        ControlGroupsV1.made(name, groups.lacking()) if has_groups else ControlGroupsV1({})
    )
    service, selector = FrameChannel(channel), selectors.DefaultSelector()
    adoption_socket = adoption_socket_in(directory_fd, selector)
    try:
        given_files = files_of_children(open_files, own_files)
        child_processes = ChildProcesses(
            service, selector, groups, given_files, ProcessIndex(groups), control_groups_v1
        )
        SpawnerSession(service, child_processes, selector, adoption_socket, adoption_s).run(
            wakeup_fd
        )
    finally:
        if adoption_socket is not None:
            adoption_socket.close()
        groups.kill()
        end_descendants(os.getpid())
        groups.remove()
        control_groups_v1.remove()
