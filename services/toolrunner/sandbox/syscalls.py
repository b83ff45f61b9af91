"""System calls that Python lacks, prepared before any fork so that a child only calls them."""

import ctypes
import os
import platform
import struct

MACHINE = platform.machine()
_COLUMN = {"x86_64": 0, "aarch64": 1}.get(MACHINE, 0)

#: Numbers on x86-64 and arm64; -1 where there is no such call.
NUMBERS: dict[str, tuple[int, int]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "adjtimex": (159, 171),
    "bpf": (321, 280),
    "capset": (126, 91),
    "chmod": (90, -1),
    "chown": (92, -1),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "file_setattr": (469, 469),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, -1),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "inotify_init": (253, -1),
    "inotify_init1": (294, 26),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "ioperm": (173, -1),
    "iopl": (172, -1),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "lchown": (94, -1),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "migrate_pages": (256, 238),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "name_to_handle_at": (303, 264),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "removexattrat": (466, 466),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "seccomp": (317, 277),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "sendmmsg": (307, 269),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpriority": (141, 140),
    "setrlimit": (160, 164),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "setxattrat": (463, 463),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, -1),
    "utimensat": (280, 88),
    "utimes": (235, -1),
    "vhangup": (153, 58),
}

CLONE_PARENT = 0x00008000
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
#: Changing the user does not change capabilities; locked.
NO_SETUID_FIXUP = 0b1100
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
CAP_SETGID, CAP_SETUID, CAP_SETPCAP = 6, 7, 8
CAP_SYS_ADMIN = 21
CAPABILITIES = 64
CAPABILITY_VERSION_3 = 0x20080522

# Keeps the GIL during a call: there is only one thread, and a child starts inside of a call.
_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_long = ctypes.c_long
_prctl = _libc.prctl
_prctl.argtypes = (ctypes.c_int, *([ctypes.c_ulong] * 4))


def number_of(name: str, column: int = _COLUMN) -> int:
    """Return the number of a system call on this machine, -1 if it has none."""
    return NUMBERS[name][column]


def call(name: str, *arguments: int | bytes | None) -> int:
    """Make a system call.

    Raises:
        OSError: The kernel refused.
    """
    words = [_long(word) if isinstance(word, int) else word for word in arguments]
    result: int = _syscall(_long(number_of(name)), *words)
    if result < 0:
        error = ctypes.get_errno()
        raise OSError(error, f"{name}: {os.strerror(error)}")
    return result


def prctl(option: int, *values: int) -> None:
    """Call prctl for this process.

    Raises:
        OSError: The kernel refused.
    """
    if _prctl(option, *(*values, 0, 0, 0, 0)[:4]) != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"prctl {option}: {os.strerror(error)}")


def unshare(flags: int) -> None:
    """Move this process to new namespaces."""
    call("unshare", flags)


def setns(fd: int, kind: int = 0) -> None:
    """Enter a namespace."""
    call("setns", fd, kind)


def clone_sibling(death_signal: int) -> int:
    """Fork a child of this process's parent; return its pid here and 0 in the child."""
    return call("clone", CLONE_PARENT | death_signal, 0, 0, 0, 0)


def has_capability(capability: int) -> bool:
    """Return whether this process has a capability."""
    with open("/proc/self/status") as file:
        held = next(line for line in file if line.startswith("CapEff:"))
    return bool(int(held.split()[1], 16) >> capability & 1)


def bound_capabilities() -> None:
    """Drop every capability from the bounding set, so that exec cannot regain it."""
    for capability in range(CAPABILITIES):
        if _prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0:
            # Past the last one, or not permitted: then only no_new_privs prevents regaining them.
            break


def drop_capabilities() -> None:
    """Drop all capabilities."""
    call("capset", struct.pack("=Ii", CAPABILITY_VERSION_3, 0), bytes(24))


def inherit_capability(capability: int) -> None:
    """Keep only the capabilities to change the user, and one that is inheritable.

    Raises:
        OSError: This process does not have it.
    """
    own = 1 << capability
    kept = own | 1 << CAP_SETGID | 1 << CAP_SETUID | 1 << CAP_SETPCAP
    header = struct.pack("=Ii", CAPABILITY_VERSION_3, 0)
    call("capset", header, struct.pack("=6I", kept, kept, own, 0, 0, 0))


def keep_capability(capability: int) -> None:
    """Drop all capabilities but one, which is kept across exec.

    Raises:
        OSError: This process does not have it.
    """
    header, own = struct.pack("=Ii", CAPABILITY_VERSION_3, 0), 1 << capability
    call("capset", header, struct.pack("=6I", own, own, own, 0, 0, 0))
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)
