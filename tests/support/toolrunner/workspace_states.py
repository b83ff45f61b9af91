"""All that a process might change of a workspace, to be compared with what it was before."""

import array
import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

GET_FLAGS = 0x80086601


def everything_in(directory: Path) -> dict[str, object]:
    """Return all that can be changed of a workspace: files, home, temporary files, output."""
    found: dict[str, object] = {}
    for place in ("files", "home", "tmp", "undo"):
        for path in (directory / place, *(directory / place).rglob("*")):
            found[str(path.relative_to(directory))] = _state(path)
    return found


def _state(path: Path) -> tuple[object, ...]:
    seen = path.lstat()
    facts = (seen.st_mode, seen.st_uid, seen.st_gid, seen.st_nlink, seen.st_mtime_ns)
    if path.is_symlink():
        return (*facts, os.readlink(path))
    if not stat.S_ISREG(seen.st_mode):
        return (*facts, os.listxattr(path))
    return (*facts, os.listxattr(path), path.read_bytes(), _flags(path))


def _flags(path: Path) -> int:
    flags = array.array("l", [0])
    with path.open("rb") as file, suppress(OSError):
        fcntl.ioctl(file, GET_FLAGS, flags)
    return flags[0]
