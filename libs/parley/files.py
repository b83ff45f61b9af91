"""Files that are replaced atomically, and readers that see the new content without a restart."""

import logging
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final, Generic, TypeVar

PRIVATE: Final = 0o600

T = TypeVar("T")

_log = logging.getLogger(__name__)


class FollowedFile(Generic[T]):
    """The content of a file as it is now; a content that cannot be used is logged and ignored.

    Args:
        path: The file, which is only ever replaced atomically.
        load: Reads it; its errors are raised here, and logged later.
        accepts: Whether a new content may follow the one in use.
    """

    def __init__(
        self,
        path: Path,
        load: Callable[[Path], T],
        accepts: Callable[[T, T], bool] = lambda before, after: True,
    ) -> None:
        self.path = path
        self._load = load
        self._accepts = accepts
        self._stamp = _stamp(path)
        self._content = load(path)

    @property
    def current(self) -> T:
        """The content, read again if the file was replaced."""
        stamp = _stamp(self.path)
        if stamp == self._stamp or stamp is None:
            return self._content
        self._stamp = stamp
        try:
            content = self._load(self.path)
        except Exception as error:
            _log.error("keeping what was read before: %s", error)
            return self._content
        if self._accepts(self._content, content):
            self._content = content
        else:
            _log.error("keeping what was read before: %s has none of the keys in use", self.path)
        return self._content


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


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
