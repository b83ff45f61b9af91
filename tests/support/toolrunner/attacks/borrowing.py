"""Runs inside of a sandbox where nothing may be written, beside one that may write everything.

Gets JSON of the workspace's path; prints JSON of what came of each attempt to write as the other.
"""

import ctypes
import json
import os
import signal
import sys

ROOT = json.loads(sys.argv[1])["root"]


def write(path: str) -> str:
    with open(path, "ab") as file:
        file.write(b"hacked")
    return "written"


def change_mode(path: str) -> str:
    os.chmod(path, 0o777)
    return "changed"


def make(path: str) -> str:
    os.mkdir(path)
    return "made"


def remove(path: str) -> str:
    os.unlink(path)
    return "removed"


def enter(pid: str) -> str:
    fd = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(fd, 0) != 0:
        raise OSError(ctypes.get_errno(), "setns")
    return "entered"


def attempts() -> dict[str, object]:
    tries: dict[str, object] = {
        "itself": lambda: write(f"{ROOT}/kept"),
        "its mode": lambda: change_mode(f"{ROOT}/kept"),
        "a new one": lambda: make(f"{ROOT}/new"),
        "removing it": lambda: remove(f"{ROOT}/kept"),
    }
    try:
        others = [name for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        others = []
    # At least one, so that something is tried where no other can be seen.
    for pid in {*others, *sys.argv[2:], "1"} - {str(os.getpid())}:
        for way in (f"root{ROOT}", "cwd"):
            place = f"/proc/{pid}/{way}"
            tries[f"{place}: write"] = lambda place=place: write(f"{place}/kept")
            tries[f"{place}: change"] = lambda place=place: change_mode(f"{place}/kept")
            tries[f"{place}: make"] = lambda place=place: make(f"{place}/new")
            tries[f"{place}: remove"] = lambda place=place: remove(f"{place}/kept")
        tries[f"{pid}: its files"] = lambda pid=pid: enter(pid)
        for fd in range(3, 12):
            tries[f"{pid}: descriptor {fd}"] = lambda pid=pid, fd=fd: write(f"/proc/{pid}/fd/{fd}")
    return tries


def main() -> None:
    signal.alarm(30)
    told = {}
    for name, attempt in attempts().items():
        try:
            told[name] = [True, attempt()]  # type: ignore[operator]
        except OSError as error:
            told[name] = [False, os.strerror(error.errno or 0)]
    print(json.dumps(told))


main()
