"""Limits the size of the logs of long-running processes."""

import asyncio
import os
import shutil
from contextlib import suppress
from pathlib import Path

from parley.cli.home.layout import Home
from parley.cli.home.log_files import LOG_BYTES_MAX, logs_of, make_room
from parley.clock import Clock

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
