"""The seccomp filter: refuses system calls that workspaces do not need and attackers use.

A BPF program checks each call before it is executed. It is built here as bytes, without the kernel,
so that tests can run it over every call in their own simulator.
"""

import ctypes
import errno
import struct
from dataclasses import dataclass, field
from functools import cache

from toolrunner.sandbox.syscalls import MACHINE, NUMBERS, call

#: Refused with EPERM whatever the arguments.
REFUSED = (
    *("acct", "add_key", "adjtimex", "bpf", "chroot", "clock_adjtime", "clock_settime"),
    *("delete_module", "fanotify_init", "finit_module", "fsconfig", "fsmount", "fsopen", "fspick"),
    *("init_module", "io_uring_enter", "io_uring_register", "io_uring_setup", "ioperm", "iopl"),
    *("kcmp", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "migrate_pages"),
    *("mount", "mount_setattr", "move_mount", "move_pages", "name_to_handle_at", "nfsservctl"),
    *("open_by_handle_at", "open_tree", "open_tree_attr", "perf_event_open", "pidfd_getfd"),
    *("pivot_root", "process_madvise", "process_vm_readv", "process_vm_writev", "ptrace"),
    *("quotactl", "quotactl_fd", "reboot", "request_key", "setdomainname", "sethostname", "setns"),
    *("settimeofday", "swapoff", "swapon", "syslog", "umount2", "unshare", "userfaultfd"),
    "vhangup",
)
#: Calls that change a file without opening it.
ATTRIBUTES = (
    *("chmod", "chown", "fchmod", "fchmodat", "fchmodat2", "fchown", "fchownat", "file_setattr"),
    *("fremovexattr", "fsetxattr", "futimesat", "lchown", "lremovexattr", "lsetxattr"),
    *("removexattr", "removexattrat", "setxattr", "setxattrat", "utime", "utimensat", "utimes"),
)
#: The types of ioctl requests that change a file, or create one, through a descriptor that was
#: opened for reading: flags, project, version, verity and encryption, and btrfs, f2fs and vfat.
FILE_REQUESTS = (*map(ord, "fXvr"), 0x94, 0xF5)
REQUEST_TYPE = 0xFF00
#: IPC objects with a global key or name, which outlive the process that created them.
SHARED_OBJECTS = (
    *("mq_open", "mq_unlink", "msgctl", "msgget", "msgrcv", "msgsnd", "semctl", "semget", "semop"),
    *("semtimedop", "shmat", "shmctl", "shmget"),
)
#: Calls that report changes below any directory that can be looked up; Landlock does not check
#: them.
WATCHES = ("inotify_add_watch", "inotify_init", "inotify_init1")
#: All flags of clone that create namespaces.
NAMESPACES = 0x7E020000
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
MSG_FASTOPEN = 0x20000000
X32_BIT = 0x40000000
PR_SET_DUMPABLE = 4
#: A limit that the kernel no longer enforces, and still passes to children.
RLIMIT_LOCKS = 10

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET = 1, 2, 5
SOCK_TYPE = 0x0F
IPPROTO_IP, IPPROTO_TCP, IPPROTO_UDP = 0, 6, 17

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMNS = {"x86_64": 0, "aarch64": 1}

ALLOW = 0x7FFF0000
KILL_PROCESS = 0x80000000
SET_MODE_FILTER = 1
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT = 0x15, 0x35, 0x45


@dataclass(frozen=True, slots=True)
class FilterOptions:
    """The operations that the filter allows, depending on the other layers.

    Attributes:
        has_paths: UNIX sockets that connect to a path or a name.
        has_tcp: Streams over IP.
        has_udp: Datagrams over IP.
        shares_user: Processes outside of the workspace have the same user and are visible, so that
            only this filter prevents changes of their limits and priorities.
        shares_objects: IPC queues, semaphores and shared memory are those of the whole host.
        keeps_attributes: No file's mode, owner, times or attributes may be changed, which Landlock
            does not check.
        keeps_sizes: No file may be truncated by its path, which old versions of Landlock do not
            check.
        keeps_names: No directory may be watched with inotify.
        stays_visible: A process may not hide its open files from the service, which has the same
            user: the call that would do so succeeds without effect, as programs require it to.
        keeps_mark: The limit that marks processes of a workspace may not be changed.
    """

    has_paths: bool
    has_tcp: bool
    has_udp: bool
    shares_user: bool = False
    shares_objects: bool = False
    keeps_attributes: bool = False
    keeps_sizes: bool = False
    keeps_names: bool = False
    keeps_mark: bool = False
    stays_visible: bool = False


#: Calls about a process, whose pid is the first argument; 0 is the caller.
_ABOUT_PROCESSES = ("sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")
#: Calls with a kind and an id, and the kinds for which id 0 means the caller: its process, or its
#: process group. The third kind is all processes of a user.
_ABOUT_KINDS = {"ioprio_set": (1, 2), "setpriority": (0, 1)}


def refusal(number: int) -> int:
    """Return the filter result that makes a call fail with an errno."""
    return 0x00050000 | number


@dataclass
class _Assembly:
    """BPF instructions; a jump skips a number of instructions."""

    code: list[tuple[int, int, int, int]] = field(default_factory=list)

    def load(self, offset: int) -> None:
        self.code.append((_LOAD, 0, 0, offset))

    def argument(self, index: int) -> None:
        # The lower half: the kernel reads an int from it.
        self.load(_ARGUMENTS + 8 * index)

    def jump(self, kind: int, value: int, if_true: int, if_false: int) -> None:
        self.code.append((kind, if_true, if_false, value))

    def end(self, verdict: int) -> None:
        self.code.append((_RETURN, 0, 0, verdict))

    def when(self, number: int, body: "_Assembly") -> None:
        """Run a body, which must return, for one call; the number stays loaded for the next."""
        self.jump(_IF_EQUAL, number, 0, len(body.code))
        self.code += body.code


def _verdict(verdict: int) -> _Assembly:
    body = _Assembly()
    body.end(verdict)
    return body


def _refuse_bits(index: int, bits: int) -> _Assembly:
    body = _Assembly()
    body.argument(index)
    body.jump(_IF_ANY_BIT, bits, 0, 1)
    body.end(refusal(errno.EPERM))
    body.end(ALLOW)
    return body


def _refuse_values(index: int, *values: int) -> _Assembly:
    body = _Assembly()
    body.argument(index)
    for value in values:
        body.jump(_IF_EQUAL, value, 0, 1)
        body.end(refusal(errno.EPERM))
    body.end(ALLOW)
    return body


def _ioctl(openings: FilterOptions) -> _Assembly:
    body = _Assembly()
    body.argument(1)
    for value in (TIOCSTI, TIOCLINUX):
        body.jump(_IF_EQUAL, value, 0, 1)
        body.end(refusal(errno.EPERM))
    if openings.keeps_attributes:
        body.code.append((_AND, 0, 0, REQUEST_TYPE))
        for kind in FILE_REQUESTS:
            body.jump(_IF_EQUAL, kind << 8, 0, 1)
            # The errno of a file system that does not know the request.
            body.end(refusal(errno.ENOTTY))
    body.end(ALLOW)
    return body


def _ignore_value(index: int, value: int) -> _Assembly:
    body = _Assembly()
    body.argument(index)
    body.jump(_IF_EQUAL, value, 0, 1)
    body.end(refusal(0))
    body.end(ALLOW)
    return body


def _refuse_others() -> _Assembly:
    body = _Assembly()
    body.argument(0)
    body.jump(_IF_EQUAL, 0, 1, 0)
    body.end(refusal(errno.EPERM))
    body.end(ALLOW)
    return body


def _refuse_kinds(*kinds: int) -> _Assembly:
    """Allow calls about the caller, of some kinds; refuse all others."""
    body = _Assembly()
    body.argument(1)
    body.jump(_IF_EQUAL, 0, 1, 0)
    body.end(refusal(errno.EPERM))
    body.argument(0)
    for kind in kinds:
        body.jump(_IF_EQUAL, kind, 0, 1)
        body.end(ALLOW)
    body.end(refusal(errno.EPERM))
    return body


def _limits_of(openings: FilterOptions) -> _Assembly:
    """Refuse `prlimit64` for other processes and, unless it only reads, for the mark."""
    body = _Assembly()
    if openings.shares_user:
        body.argument(0)
        body.jump(_IF_EQUAL, 0, 1, 0)
        body.end(refusal(errno.EPERM))
    if openings.keeps_mark:
        checks = _Assembly()
        # A pointer: both halves.
        for half in (0, 4):
            checks.load(_ARGUMENTS + 8 * 2 + half)
            checks.jump(_IF_EQUAL, 0, 1, 0)
            checks.end(refusal(errno.EPERM))
        body.argument(1)
        body.jump(_IF_EQUAL, RLIMIT_LOCKS, 0, len(checks.code))
        body.code += checks.code
    body.end(ALLOW)
    return body


def _kind(openings: FilterOptions, family: int) -> dict[int, tuple[int, ...]]:
    """Return the allowed types of an address family, with their protocols; empty for any."""
    if family == AF_UNIX:
        return {SOCK_STREAM: (), SOCK_DGRAM: (), SOCK_SEQPACKET: ()} if openings.has_paths else {}
    kinds: dict[int, tuple[int, ...]] = {}
    if openings.has_tcp:
        kinds[SOCK_STREAM] = (IPPROTO_IP, IPPROTO_TCP)
    if openings.has_udp:
        kinds[SOCK_DGRAM] = (IPPROTO_IP, IPPROTO_UDP)
    return kinds


def _socket(openings: FilterOptions) -> _Assembly:
    body = _Assembly()
    for family in (AF_UNIX, AF_INET, AF_INET6):
        inner = _Assembly()
        for kind, protocols in _kind(openings, family).items():
            checks = _Assembly()
            if protocols:
                checks.argument(2)
                for protocol in protocols:
                    checks.jump(_IF_EQUAL, protocol, 0, 1)
                    checks.end(ALLOW)
                checks.end(refusal(errno.EACCES))
            else:
                checks.end(ALLOW)
            inner.argument(1)
            inner.code.append((_AND, 0, 0, SOCK_TYPE))
            inner.jump(_IF_EQUAL, kind, 0, len(checks.code))
            inner.code += checks.code
        inner.end(refusal(errno.EACCES))
        body.argument(0)
        body.jump(_IF_EQUAL, family, 0, len(inner.code))
        body.code += inner.code
    body.end(refusal(errno.EAFNOSUPPORT))
    return body


def _socket_pair(openings: FilterOptions) -> _Assembly:
    """Allow socket pairs that cannot be connected to another address."""
    if openings.has_paths:
        return _verdict(ALLOW)
    body = _Assembly()
    body.argument(1)
    body.code.append((_AND, 0, 0, SOCK_TYPE))
    body.jump(_IF_EQUAL, SOCK_DGRAM, 0, 1)
    body.end(refusal(errno.EACCES))
    body.end(ALLOW)
    return body


@cache
def program(openings: FilterOptions, machine: str = MACHINE) -> bytes:
    """Return the filter for a machine type.

    Raises:
        KeyError: Its system call numbers are unknown.
    """
    column = COLUMNS[machine]
    code = _Assembly()
    code.load(_ARCHITECTURE)
    code.jump(_IF_EQUAL, ARCHITECTURES[machine], 1, 0)
    code.end(KILL_PROCESS)
    code.load(_NUMBER)
    if machine == "x86_64":
        code.jump(_IF_AT_LEAST, X32_BIT, 0, 1)
        code.end(refusal(errno.ENOSYS))
    refused = (
        *REFUSED,
        *(ATTRIBUTES if openings.keeps_attributes else ()),
        *(("truncate",) if openings.keeps_sizes else ()),
        *(SHARED_OBJECTS if openings.shares_objects else ()),
    )
    verdicts = dict.fromkeys(refused, errno.EPERM)
    if openings.keeps_names:
        # The errno of a kernel without inotify, so that programs fall back to polling.
        verdicts |= dict.fromkeys(WATCHES, errno.ENOSYS)
    for name, error in verdicts.items():
        if NUMBERS[name][column] >= 0:
            code.when(NUMBERS[name][column], _verdict(refusal(error)))
    bodies = {
        # Its arguments are behind a pointer, which filters cannot read; libraries fall back to
        # clone.
        "clone3": _verdict(refusal(errno.ENOSYS)),
        "clone": _refuse_bits(0, NAMESPACES),
        "ioctl": _ioctl(openings),
        "socket": _socket(openings),
        "socketpair": _socket_pair(openings),
        # With this flag they connect without the check of connect.
        "sendto": _refuse_bits(3, MSG_FASTOPEN),
        "sendmsg": _refuse_bits(2, MSG_FASTOPEN),
        "sendmmsg": _refuse_bits(3, MSG_FASTOPEN),
    }
    if openings.shares_user:
        bodies |= {name: _refuse_others() for name in _ABOUT_PROCESSES}
        bodies |= {name: _refuse_kinds(*kinds) for name, kinds in _ABOUT_KINDS.items()}
    if openings.shares_user or openings.keeps_mark:
        bodies["prlimit64"] = _limits_of(openings)
    if openings.stays_visible:
        bodies["prctl"] = _ignore_value(0, PR_SET_DUMPABLE)
    if openings.keeps_mark:
        bodies["setrlimit"] = _refuse_values(0, RLIMIT_LOCKS)
    for name, body in bodies.items():
        code.when(NUMBERS[name][column], body)
    code.end(ALLOW)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code.code)


def install(filter: bytes) -> None:
    """Apply a filter to this process and its future children; requires no_new_privs.

    Raises:
        OSError: The kernel refused.
    """
    buffer = ctypes.create_string_buffer(filter, len(filter))
    fprog = struct.pack("@HP", len(filter) // 8, ctypes.addressof(buffer))
    call("seccomp", SET_MODE_FILTER, 0, fprog)
