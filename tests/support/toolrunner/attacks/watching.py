"""Runs inside of a sandbox and tries to learn of changes in directories that are not its own.

Gets JSON of directories; prints JSON of what came of each attempt.
"""

import ctypes
import fcntl
import json
import os
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
CHANGES = 0x00000FFF


def told(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def watch(path: str) -> str:
    queue = told(LIBC.inotify_init1(0))
    told(LIBC.inotify_add_watch(queue, os.fsencode(path), CHANGES))
    return "watched"


def watch_by_old_call(path: str) -> str:
    if not X86:
        raise OSError(38, "no such call here")
    queue = told(LIBC.syscall(253))
    told(LIBC.syscall(254, queue, os.fsencode(path), CHANGES))
    return "watched"


def watch_by_mark(path: str) -> str:
    queue = told(LIBC.syscall(300 if X86 else 262, 0x200, 0))
    told(LIBC.syscall(301 if X86 else 263, queue, 1, ctypes.c_uint64(0x3A), -100, path.encode()))
    return "watched"


def watch_by_signal(path: str) -> str:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.fcntl(fd, fcntl.F_NOTIFY, fcntl.DN_CREATE | fcntl.DN_MODIFY)
    return "watched"


def main() -> None:
    found = {}
    for path in json.loads(sys.argv[1]):
        for way in (watch, watch_by_old_call, watch_by_mark, watch_by_signal):
            try:
                found[f"{way.__name__} {path}"] = [True, way(path)]
            except OSError as error:
                found[f"{way.__name__} {path}"] = [False, os.strerror(error.errno or 0)]
    print(json.dumps(found))


main()
