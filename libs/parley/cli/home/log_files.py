"""The log files of processes: opened for appending, rotated by size, read from their end."""

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from parley.cli.home.layout import Home
from parley.clock import Clock

LOG_BYTES_MAX = 8 * 1024 * 1024
OLD_LOGS_MAX = 3
TAIL_BYTES = 256 * 1024


def open_log(path: Path, *, bytes_max: int = LOG_BYTES_MAX) -> BinaryIO:
    """Open `path` for appending; a file above `bytes_max` is rotated first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and path.stat().st_size > bytes_max:
        _rotate(path)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    return os.fdopen(descriptor, "ab", buffering=0)


def tail(path: Path, lines: int, *, since: int = 0) -> tuple[str, ...]:
    """Return the last `lines` lines of `path` after byte `since`; none if there is no file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            if since > size:
                # The file was rotated.
                since = 0
            start = max(since, size - TAIL_BYTES)
            file.seek(start)
            found = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    if start > since:
        # The first line is incomplete.
        found = found[1:]
    return tuple(found[-lines:]) if lines > 0 else ()


def logs_of(home: Home) -> list[Path]:
    """Return the logs of all processes of `home` that have written one."""
    found = home.logs.glob("*.log")
    return sorted((*found, *(path for path in (home.postgres_log,) if path.exists())))


def _rotate(path: Path) -> None:
    make_room(path)
    path.replace(path.with_name(f"{path.name}.1"))


def make_room(path: Path) -> None:
    """Rename older logs, so that the first suffix is free."""
    for number in range(OLD_LOGS_MAX, 1, -1):
        newer = path.with_name(f"{path.name}.{number - 1}")
        if newer.exists():
            newer.replace(path.with_name(f"{path.name}.{number}"))


LOOK_EVERY_S = 60.0


async def bound_logs(home: Home, clock: Clock, *, bytes_max: int = LOG_BYTES_MAX) -> None:
    """Rotate logs that have grown above `bytes_max`, until this is cancelled."""
    while True:
        await clock.sleep(LOOK_EVERY_S)
        for path in logs_of(home):
            # On a full disk it cannot be rotated, but cannot grow either.
            with suppress(OSError):
                await asyncio.to_thread(rotate_by_copy, path, bytes_max=bytes_max)


def rotate_by_copy(path: Path, *, bytes_max: int) -> None:
    """Truncate a log that has grown large, after copying it: its writers keep their descriptors.

    They append, so they continue at its beginning. Lines that they write between the copy and the
    truncation are lost.
    """
    if path.stat().st_size <= bytes_max:
        return
    copy = path.with_name(f"{path.name}.copy")
    copy.unlink(missing_ok=True)
    try:
        with open(copy, "xb", opener=_private) as target, open(path, "r+b", opener=_private) as log:
            shutil.copyfileobj(log, target)
            target.flush()
            log.truncate(0)
        make_room(path)
        copy.replace(path.with_name(f"{path.name}.1"))
    finally:
        copy.unlink(missing_ok=True)


def _private(path: str, flags: int) -> int:
    # The directory may belong to the user of the database, which could have created a link there.
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
