"""Renaming in one step, where Python's own way could replace what it should not."""

import ctypes
import errno
import os
from typing import Final

RENAME_NOREPLACE: Final = 1
RENAME_EXCHANGE: Final = 2
#: What file systems say that cannot do it.
_UNKNOWN: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})

_libc: Final = ctypes.CDLL(None, use_errno=True)


def rename_to_free(old_fd: int, old: str, new_fd: int, new: str) -> None:
    """Give an entry another name that nothing has.

    Raises:
        OSError: Something has it, or the kernel refuses.
    """
    _rename(old_fd, old, new_fd, new, RENAME_NOREPLACE)


def exchanged(old_fd: int, old: str, new_fd: int, new: str) -> bool:
    """Let two entries have each other's name; return False if the file system cannot.

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
