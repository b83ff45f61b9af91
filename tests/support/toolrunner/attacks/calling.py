"""Runs inside of a sandbox and makes system calls that an attacker would like to make.

Gets JSON of a pid that is not its own; prints JSON of what came of each.
"""

import ctypes
import json
import os
import signal
import sys

VICTIM = json.loads(sys.argv[1])["victim"]
LIBC = ctypes.CDLL(None, use_errno=True)
X86 = os.uname().machine == "x86_64"
NEW = {
    "user": 0x10000000,
    "mount": 0x20000,
    "pid": 0x20000000,
    "net": 0x40000000,
    "uts": 0x4000000,
    "ipc": 0x8000000,
    "cgroup": 0x2000000,
}


def call(number: int, *words: object) -> str:
    ctypes.set_errno(0)
    result = LIBC.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return f"returned {result}"


def clone(flags: int) -> str:
    result = LIBC.syscall(
        ctypes.c_long(56 if X86 else 220), ctypes.c_long(flags | signal.SIGCHLD), 0, 0, 0, 0
    )
    if result == 0:
        os._exit(0)
    if result < 0:
        raise OSError(ctypes.get_errno(), "clone")
    return "cloned"


def escaping() -> dict[str, object]:
    """What makes namespaces, mounts or programs of the kernel."""
    buffer = ctypes.create_string_buffer(256)
    tries: dict[str, object] = {}
    for name, flag in NEW.items():
        tries[f"unshare {name}"] = lambda flag=flag: call(272 if X86 else 97, ctypes.c_long(flag))
        tries[f"clone {name}"] = lambda flag=flag: clone(flag)
    numbers = {
        "setns": (308, 268),
        "mount": (165, 40),
        "umount2": (166, 39),
        "pivot_root": (155, 41),
        "chroot": (161, 51),
        "fsopen": (430, 430),
        "open_tree": (428, 428),
        "mount_setattr": (442, 442),
        "io_uring_setup": (425, 425),
        "bpf": (321, 280),
        "keyctl": (250, 219),
        "add_key": (248, 217),
        "userfaultfd": (323, 282),
        "perf_event_open": (298, 241),
        "open_by_handle_at": (304, 265),
        "init_module": (175, 105),
        "kexec_load": (246, 104),
        "reboot": (169, 142),
        "swapon": (167, 224),
        "syslog": (103, 116),
        "clock_settime": (227, 112),
        "clone3": (435, 435),
    }
    for name, pair in numbers.items():
        number = pair[0 if X86 else 1]
        tries[name] = lambda number=number: call(number, buffer, buffer, buffer, 0, 0)
    if X86:
        tries["x32 getpid"] = lambda: call(0x40000000 | 39)
        tries["x32 ptrace"] = lambda: call(0x40000000 | 521, 0, 0, 0, 0)
    return tries


def meddling() -> dict[str, object]:
    """What is done to a process of somebody else."""
    buffer = ctypes.create_string_buffer(64)
    far = (ctypes.c_ulong * 2)(0x400000, 8)
    near = (ctypes.c_ulong * 2)(ctypes.addressof(buffer), 8)
    tries: dict[str, object] = {}
    for pid in VICTIM:
        tries[f"kill {pid}"] = lambda pid=pid: signalled(pid, 0)
        tries[f"stop {pid}"] = lambda pid=pid: signalled(pid, signal.SIGCONT)
        tries[f"attach {pid}"] = lambda pid=pid: call(101 if X86 else 117, 16, pid, 0, 0)
        tries[f"seize {pid}"] = lambda pid=pid: call(101 if X86 else 117, 0x4206, pid, 0, 0)
        tries[f"read memory {pid}"] = lambda pid=pid: call(
            310 if X86 else 270, pid, near, 1, far, 1, 0
        )
        tries[f"limit {pid}"] = lambda pid=pid: call(302 if X86 else 261, pid, 7, None, buffer)
        tries[f"slow down {pid}"] = lambda pid=pid: slowed(pid)
        for file in ("environ", "mem", "maps", "root/etc/shadow", "cwd/x", "fd", "cmdline"):
            tries[f"open {pid} {file}"] = lambda pid=pid, file=file: look(f"/proc/{pid}/{file}")
    return tries


def signalled(pid: int, number: int) -> str:
    os.kill(pid, number)
    return "signalled"


def slowed(pid: int) -> str:
    os.setpriority(os.PRIO_PROCESS, pid, 19)
    return "slowed"


def look(path: str) -> str:
    if os.path.isdir(path):
        return repr(os.listdir(path))
    with open(path, "rb") as file:
        return repr(file.read(20))


def main() -> None:
    told = {}
    for name, attempt in {**escaping(), **meddling()}.items():
        try:
            told[name] = [True, attempt()]  # type: ignore[operator]
        except OSError as error:
            told[name] = [False, os.strerror(error.errno or 0)]
    print(json.dumps(told))


main()
