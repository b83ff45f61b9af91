"""The log files of processes: opened for appending, rotated by size, read from their end."""

import os
from pathlib import Path
from typing import BinaryIO

LOG_BYTES_MAX = 8 * 1024 * 1024
OLD_LOGS_MAX = 3
TAIL_BYTES = 256 * 1024


def open_log(path: Path, *, bytes_max: int = LOG_BYTES_MAX) -> BinaryIO:
    """Open `path` for appending; a file that has grown large is first put aside."""
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
            start = max(since, size - TAIL_BYTES)
            file.seek(start)
            found = file.read().decode(errors="replace").splitlines()
    except FileNotFoundError:
        return ()
    if start > since:
        # The first line was cut in its middle.
        found = found[1:]
    return tuple(found[-lines:]) if lines > 0 else ()


def _rotate(path: Path) -> None:
    for number in range(OLD_LOGS_MAX, 0, -1):
        newer = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
        if newer.exists():
            newer.replace(path.with_name(f"{path.name}.{number}"))
