"""Server processes: started through the launcher, waited for, and found again after a crash."""

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
#: How to end a server, ever less politely, and the share of the time that each may take.
STOP_STEPS = ((signal.SIGINT, 0.6), (signal.SIGQUIT, 0.2), (signal.SIGKILL, 0.2))
# Messages and number formats in English, whatever the supervisor's language is.
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}

log = logging.getLogger(__name__)


async def start_process(
    command: Sequence[str | Path], *, place: ServerDirectory, account: Account | None
) -> "subprocess.Popen[bytes]":
    """Start `command` so that it ends with this process; call it on a thread that lives as long.

    Raises:
        ServerStartFailed: The launcher refused.
    """
    arguments = ["--parent", str(os.getpid()), "--log", str(place.log_file)]
    if account is not None:
        arguments += ["--uid", str(account.uid), "--gid", str(account.gid)]
    for path in (place.root, place.socket_directory, command[0]):
        arguments += ["--reach", str(path)]
    # A session of its own: Ctrl-C in the terminal must reach the supervisor only.
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
        # It ends when the launcher becomes the server, whose errors go to the log.
        refusal = await asyncio.to_thread(process.stderr.read)
    if refusal:
        await until_exit(process.pid)
        process.wait()
        raise ServerStartFailed(place.log_file, refusal.decode(errors="replace").strip())
    return process


async def until_exit(pid: int) -> None:
    """Return when the process, ours or not, has ended."""
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
    """End a server: politely, then at once, then by force; each only if the one before failed."""
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
    """Return the process that the data directory's lock file names."""
    try:
        return int((data / "postmaster.pid").read_text().partition("\n")[0])
    except (FileNotFoundError, ValueError):
        return None


def is_ready(data: Path, pid: int) -> bool:
    """Return whether the server `pid` accepts connections, by its own word in the lock file."""
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
    """Stop a server that outlived its supervisor, and set a lock file aside that is plainly stale.

    Call this only with the directory's lock held, when nobody can be using such a server.
    """
    pid = recorded_pid(data)
    if pid is None:
        return
    if serves(pid, data):
        log.warning("stopping PostgreSQL %d, which its supervisor left behind", pid)
        await stop_process(pid)
    elif _exists(pid):
        # PostgreSQL itself would refuse to start, because some process has that number now.
        log.warning("setting the stale lock file of PostgreSQL %d aside", pid)
        (data / "postmaster.pid").rename(data / "postmaster.pid.stale")
