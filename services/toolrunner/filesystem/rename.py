"""Atomic renames with renameat2, where `os.rename` could replace another entry."""

import ctypes
import errno
import os
from typing import Final

RENAME_NOREPLACE: Final = 1
RENAME_EXCHANGE: Final = 2
#: The errors of file systems that do not support it.
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})

_libc: Final = ctypes.CDLL(None, use_errno=True)


def rename_to_free(old_fd: int, old: str, new_fd: int, new: str) -> None:
    """Rename an entry to a name that does not exist.

    Raises:
        OSError: The name exists, or the kernel refuses.
    """
    _rename(old_fd, old, new_fd, new, RENAME_NOREPLACE)


def exchanged(old_fd: int, old: str, new_fd: int, new: str) -> bool:
    """Exchange the names of two entries; return False if the file system does not support it.

    Raises:
        OSError: One of them is missing, or the kernel refuses.
    """
    try:
        _rename(old_fd, old, new_fd, new, RENAME_EXCHANGE)
    except OSError as error:
        if error.errno in _UNKNOWN:
            return False
        raise
    return True


def _rename(old_fd: int, old: str, new_fd: int, new: str, flags: int) -> None:
    if _libc.renameat2(old_fd, os.fsencode(old), new_fd, os.fsencode(new), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), new)
