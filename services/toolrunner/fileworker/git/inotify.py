"""Change notifications of directories by inotify."""

import ctypes
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

IN_MODIFY: Final = 0x2
IN_ATTRIB: Final = 0x4
IN_CLOSE_WRITE: Final = 0x8
IN_MOVED_FROM: Final = 0x40
IN_MOVED_TO: Final = 0x80
IN_CREATE: Final = 0x100
IN_DELETE: Final = 0x200
IN_DELETE_SELF: Final = 0x400
IN_MOVE_SELF: Final = 0x800
IN_Q_OVERFLOW: Final = 0x4000
IN_IGNORED: Final = 0x8000
IN_ONLYDIR: Final = 0x1000000
IN_DONT_FOLLOW: Final = 0x2000000
IN_ISDIR: Final = 0x40000000

CHANGES: Final = (
    IN_MODIFY
    | IN_ATTRIB
    | IN_CLOSE_WRITE
    | IN_MOVED_FROM
    | IN_MOVED_TO
    | IN_CREATE
    | IN_DELETE
    | IN_DELETE_SELF
    | IN_MOVE_SELF
)
READ_BYTES: Final = 256 * 1024

_HEAD: Final = struct.Struct("iIII")
_libc: Final = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Notice:
    """A change in a watched directory."""

    watch: int  # -1 if events were lost.
    mask: int
    name: str

    @property
    def is_directory(self) -> bool:
        """Whether a directory changed, or the watched one itself."""
        return bool(self.mask & (IN_ISDIR | IN_DELETE_SELF | IN_MOVE_SELF))


class Inotify:
    """One inotify queue.

    Attributes:
        fd: Readable when there are events.
    """

    def __init__(self) -> None:
        self.fd: int = _libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self.fd < 0:
            # The number of queues per user is limited; without one, changes are found by polling.
            self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    def close(self) -> None:
        """Stop watching."""
        os.close(self.fd)

    def watch(self, directory: str) -> int:
        """Watch a directory, not its subdirectories.

        Raises:
            OSError: It is not a directory, or there are too many watches.
        """
        # Without a queue the kernel refuses, as it does at the watch limit.
        mask = CHANGES | IN_ONLYDIR | IN_DONT_FOLLOW
        watch: int = _libc.inotify_add_watch(self.fd, os.fsencode(directory), mask)
        if watch < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), directory)
        return watch

    def read(self) -> Iterator[Notice]:
        """Yield the available events."""
        while True:
            try:
                data = os.read(self.fd, READ_BYTES)
            except BlockingIOError:
                return
            repository_paths = 0
            while repository_paths < len(data):
                watch, mask, _, length = _HEAD.unpack_from(data, repository_paths)
                repository_paths += _HEAD.size
                name = data[repository_paths : repository_paths + length].rstrip(b"\0")
                repository_paths += length
                yield Notice(watch, mask, os.fsdecode(name))
