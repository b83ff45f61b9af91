"""Files that are replaced atomically: a reader sees the old content or the new."""

import os
import tempfile
from pathlib import Path
from typing import Final

PRIVATE: Final = 0o600


def write_atomically(
    path: Path, content: bytes, *, mode: int = PRIVATE, owner: tuple[int, int] | None = None
) -> None:
    """Replace `path` with `content` atomically, with fsync and with exactly `mode`.

    Args:
        path: The file.
        content: Its new content.
        mode: Its permissions.
        owner: The ids of its user and group, if it is for another account.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            if owner is not None:
                os.fchown(file.fileno(), *owner)
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
