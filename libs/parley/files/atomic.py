"""Atomic replacement of a file."""

import os
import tempfile
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600


def write_atomically(path: Path, content: bytes, *, mode: int = PRIVATE) -> None:
    """Replace `path` with `content` atomically, with fsync and with exactly `mode`."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
