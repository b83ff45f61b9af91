"""Writing files that only their owner may read, so that no reader sees half of one."""

import os
import secrets
from pathlib import Path

FILE_MODE = 0o600
DIRECTORY_MODE = 0o700


def write_private(path: Path, text: str) -> None:
    """Replace `path` with `text` in one step, readable by its owner only."""
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def make_private_directory(path: Path) -> None:
    """Make sure that `path` is a directory which only its owner may enter."""
    path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(DIRECTORY_MODE)
