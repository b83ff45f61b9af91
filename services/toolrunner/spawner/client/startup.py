"""Startup of the spawner: adopt the one that an earlier run of the service left, or start one."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from parley.process import OpenFiles
from toolrunner import spawner as program
from toolrunner.primitives.errors import SpawnerGone
from toolrunner.spawner.client.spawner import Adopted, SpawnerProcess

END_S: Final = 6.0
ADOPT_S: Final = 5.0
LOG_NAME: Final = "spawner.log"
LOG_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC

#: Only the service's own package is on the path, after all other entries.
_RUN: Final = (
    "import sys; sys.path.append(sys.argv.pop(1)); import toolrunner.spawner as s; s.main()"
)


@dataclass(frozen=True, slots=True)
class RunningSpawner:
    """A spawner, and the processes that an earlier run of the service left in it."""

    process: SpawnerProcess
    adopted: tuple[Adopted, ...]
    pid: int
    child: "subprocess.Popen[bytes] | None" = None  # None if it was adopted.


@asynccontextmanager
async def running_spawner(
    directory: Path,
    *,
    adoption_s: float,
    has_groups: bool = True,
    open_files: OpenFiles | None = None,
) -> AsyncIterator[RunningSpawner]:
    """Run a spawner in a context; the exit ends all processes that it started.

    Enter this before the gRPC server exists: the fork here is the last of this process. No other
    process may do so in the same directory at the same time.

    Args:
        directory: Where a spawner listens for the next run of the service.
        adoption_s: How long it waits for one after this process was killed.
        has_groups: Whether it may use control groups, where available.
        open_files: The limits of this process; children get the limit of this process's start.
    """
    directory_fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        running = await _left_behind(directory_fd)
        if running is None:
            with nullcontext() if open_files is None else open_files.as_at_start():
                running = _started(directory_fd, adoption_s, has_groups=has_groups)
        group_name = program.group_name(directory_fd)
    finally:
        os.close(directory_fd)
    pid_fd = os.pidfd_open(running.pid)
    try:
        yield running
    finally:
        running.process.close()
        await _ended(pid_fd)
        os.close(pid_fd)
        if running.child is not None:
            await asyncio.to_thread(running.child.wait)
        await asyncio.to_thread(program.ControlGroups.end, group_name)


async def _left_behind(directory_fd: int) -> RunningSpawner | None:
    """Adopt a spawner that was left running; one with another protocol version is stopped."""
    channel = socket.socket(socket.AF_UNIX)
    try:
        channel.connect(program.socket_path(directory_fd))
    except OSError:
        channel.close()
        return None
    spawner = SpawnerProcess(channel)
    with suppress(SpawnerGone, TimeoutError):
        async with asyncio.timeout(ADOPT_S):
            version, pid, adopted = await spawner.adopt(program.kept_secret(directory_fd))
        if version == program.VERSION:
            return RunningSpawner(spawner, adopted, pid)
        for each in adopted:
            each.launched.close()
    spawner.close()
    return None


def _started(directory_fd: int, adoption_s: float, *, has_groups: bool) -> RunningSpawner:
    ours, theirs = socket.socketpair()
    package = Path(program.__file__).parent.parent.parent
    # Not the descriptors of this process: their readers would wait for the spawner's exit too.
    log_fd = os.open(LOG_NAME, LOG_FLAGS, 0o600, dir_fd=directory_fd)
    with theirs, os.fdopen(log_fd) as log:
        child = subprocess.Popen(
            [
                *(sys.executable, "-I", "-S", "-c", _RUN, str(package)),
                *(str(theirs.fileno()), str(directory_fd), str(adoption_s), str(int(has_groups))),
            ],
            pass_fds=(theirs.fileno(), directory_fd),
            env={},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    return RunningSpawner(SpawnerProcess(ours), (), child.pid, child)


async def _ended(pid_fd: int) -> None:
    """Wait for the spawner's exit, which lasts until the kernel has released all processes."""
    loop = asyncio.get_running_loop()
    is_over = asyncio.Event()
    loop.add_reader(pid_fd, is_over.set)
    try:
        async with asyncio.timeout(END_S):
            await is_over.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pid_fd, signal.SIGKILL)
    finally:
        loop.remove_reader(pid_fd)
