"""Server processes: started through the launcher, awaited, and found again after a crash."""

import asyncio
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from parley.postgres import launch
from parley.postgres.directory import Account, ServerDirectory
from parley.postgres.errors import ServerStartFailed

STOP_S_MAX = 9.0
#: The signals that stop a server, in order, and the share of the time that each may take.
STOP_STEPS = ((signal.SIGINT, 0.6), (signal.SIGQUIT, 0.2), (signal.SIGKILL, 0.2))
# Messages and number formats in English, whatever the supervisor's locale is.
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}

log = logging.getLogger(__name__)


async def start_process(
    command: Sequence[str | Path], *, place: ServerDirectory, account: Account | None
) -> "subprocess.Popen[bytes]":
    """Start `command` so that it ends with this thread, which must live as long as the server.

    Raises:
        ServerStartFailed: The launcher refused.
    """
    arguments = ["--parent", str(os.getpid()), "--log", str(place.log_file)]
    if account is not None:
        arguments += ["--uid", str(account.uid), "--gid", str(account.gid)]
    for path in (place.root, place.socket_directory, command[0]):
        arguments += ["--reach", str(path)]
    # A new session: Ctrl-C in the terminal must reach the supervisor only.
    process = subprocess.Popen(  # noqa: ASYNC220 (the death signal follows the thread that forks)
        [sys.executable, "-I", "-S", launch.__file__, *arguments, "--", *map(str, command)],
        cwd="/",
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stderr is not None
    with process.stderr:
        # It ends when the launcher calls exec; the server's errors go to the log.
        refusal = await asyncio.to_thread(process.stderr.read)
    if refusal:
        await until_exit(process.pid)
        process.wait()
        raise ServerStartFailed(place.log_file, refusal.decode(errors="replace").strip())
    return process


async def until_exit(pid: int) -> None:
    """Return when the process, a child or not, has ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    loop.add_reader(descriptor, ended.set)
    try:
        await ended.wait()
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


async def stop_process(pid: int, *, within_s: float = STOP_S_MAX) -> None:
    """Stop a server with each signal in turn; the next is sent if it did not end in time."""
    for number, share in STOP_STEPS:
        limit_s = share * within_s
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        try:
            async with asyncio.timeout(limit_s):
                await until_exit(pid)
                return
        except TimeoutError:
            log.warning("PostgreSQL %d did not end within %.1f s of %s", pid, limit_s, number.name)


def recorded_pid(data: Path) -> int | None:
    """Return the process id in the data directory's lock file."""
    try:
        return int((data / "postmaster.pid").read_text().partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def is_ready(data: Path, pid: int) -> bool:
    """Return whether the lock file says that the server `pid` accepts connections."""
    try:
        lines = (data / "postmaster.pid").read_text().split("\n")
    except FileNotFoundError:
        return False
    return lines[0] == str(pid) and len(lines) > 7 and lines[7].strip() == "ready"


def serves(pid: int, data: Path) -> bool:
    """Return whether process `pid` is a PostgreSQL server of exactly this data directory."""
    process = Path("/proc") / str(pid)
    try:
        return (process / "comm").read_text().strip() == "postgres" and (process / "cwd").samefile(
            data
        )
    except OSError:
        return False


def _exists(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def end_leftover(data: Path) -> None:
    """Stop a server that outlived its supervisor, and move a stale lock file away.

    Call this only with the directory's lock held, when no process can be using such a server.
    """
    pid = recorded_pid(data)
    if pid is None:
        return
    if serves(pid, data):
        log.warning("stopping PostgreSQL %d, which its supervisor left behind", pid)
        await stop_process(pid)
    elif _exists(pid):
        # PostgreSQL itself would refuse to start, because another process has that id now.
        log.warning("setting the stale lock file of PostgreSQL %d aside", pid)
        (data / "postmaster.pid").rename(data / "postmaster.pid.stale")
