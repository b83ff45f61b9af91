"""One child: its record, and its way from fork to exec, where it runs the program or reports."""

import errno
import fcntl
import json
import os
import signal
import struct
import termios
from dataclasses import dataclass, field
from typing import Any, NoReturn

from toolrunner.sandbox import (
    Confinement,
    LayerFailed,
    NamespaceSet,
    bound_process,
    confine,
    host_limits,
    mount_scratch,
)
from toolrunner.spawner.control_groups import join
from toolrunner.spawner.kernel import (
    PR_SET_PDEATHSIG,
    mark_self,
    open_directory_beneath,
    prctl,
)
from toolrunner.spawner.limits import limit_process, offer_to_the_killer

REPORT_FD = 3
SHELL = "sh"
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class ChildDescriptors:
    """The child's ends of its pipes or terminal; with a terminal input and output are the same."""

    input_fd: int  # -1 for no input.
    output_fd: int
    report_fd: int
    is_terminal: bool


@dataclass
class LaunchPlan:
    """How a child is confined; without a namespace set it stays in the spawner's namespaces.

    Attributes:
        is_inside: Whether it was forked directly into the pid namespace of its namespace set.
    """

    confinement: Confinement | None = None
    filter: bytes = b""
    namespace_set: NamespaceSet | None = None
    tree: int = -1
    is_inside: bool = False

    def fork(self) -> int:
        """Fork; return the pid of the child in the parent, and 0 in the child.

        Raises:
            OSError: The kernel refused; there is no child.
        """
        if self.namespace_set is None:
            return os.fork()
        pid, self.is_inside = self.namespace_set.fork()
        return pid

    @property
    def user_limits(self) -> dict[str, int]:
        """Its share of the resources that the kernel counts per user."""
        if self.namespace_set is not None:
            return self.namespace_set.limits
        # Without its own user it shares all counts with the service, which keeps half.
        is_shared = self.confinement is not None and self.confinement.uid < 0
        return {name: number // 2 for name, number in host_limits().items()} if is_shared else {}


def become(
    message: dict[str, Any],
    parent: int,
    descriptors: ChildDescriptors,
    groups: list[str],
    open_files: tuple[int, int],
    launch_plan: LaunchPlan,
    # It exits in `finally`, which Pyrefly does not follow.
) -> NoReturn:  # pyrefly: ignore[bad-return]
    """Execute the program that a message names, or report the error.

    The report is lines of JSON: the pid of the process inside, if the child enters a namespace set
    by another fork; before exec the layers that were applied; otherwise the stage and errno of the
    failure.
    """
    stage, report_fd = "session", descriptors.report_fd
    try:
        stage = "group"
        for group in groups:
            join(group)
        offer_to_the_killer()
        if launch_plan.namespace_set is not None:
            stage = "namespaces"
            if launch_plan.is_inside:
                launch_plan.namespace_set.join(launch_plan.tree)
            else:
                enter(launch_plan.namespace_set, launch_plan.tree, report_fd)
        if launch_plan.confinement is not None and launch_plan.confinement.has_scratch:
            stage = "scratch"
            mount_scratch(launch_plan.confinement)
        stage = "session"
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if launch_plan.namespace_set is None and os.getppid() != parent:
            os._exit(1)
        # Signals need no reset: exec restores the default for those with a handler.
        os.umask(0o022)
        stage = "workdir"
        os.fchdir(open_directory_beneath(message["root"], message["workdir"]))
        stage = "descriptors"
        report_fd = connect(descriptors)
        stage = "limits"
        limit_process(message["limits"], open_files)
        bound_process(launch_plan.user_limits)
        mark_self(message["workspace"], message["mark"])
        if launch_plan.confinement is not None:
            stage = "confinement"
            confine(launch_plan.confinement, launch_plan.filter)
            # Changing the user clears it.
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            report(report_fd, layers=launch_plan.confinement.layers)
        stage = "exec"
        execute(message["argv"], message["environment"])
    except LayerFailed as failed:
        report(report_fd, stage=f"confinement, {failed.layer.word}", errno=failed.errno)
    except OSError as error:
        report(report_fd, stage=stage, errno=error.errno)
    except BaseException:
        report(report_fd, stage=stage, errno=0)
    finally:
        os._exit(127)


def execute(argv: list[str], environment: dict[str, str]) -> NoReturn:
    """Execute the program, searched in the PATH of its environment.

    `os.execvpe` does the same, but takes longer to determine the search path than all other steps
    between fork and exec.

    Raises:
        OSError: It does not exist, or cannot be executed.
    """
    program = argv[0]
    if "/" in program:
        os.execve(program, argv, environment)
    refused: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
    places = environment.get("PATH", os.defpath).split(":")
    if program == SHELL:
        # A PATH set for a command line applies to its programs; the shell must still be found.
        places += os.defpath.split(":")
    for directory in places:
        try:
            os.execve(os.path.join(directory, program), argv, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refused = error
    raise refused


def enter(namespace_set: NamespaceSet, tree: int, report_fd: int) -> None:
    """Continue inside of a namespace set; the outer process reports the inner pid and exits."""
    inside = namespace_set.enter(tree)
    if inside:
        report(report_fd, pid=inside)
        os._exit(0)


def report(fd: int, **document: object) -> None:
    """Send a report to the spawner, in one write."""
    os.write(fd, json.dumps(document).encode() + b"\n")


def connect(descriptors: ChildDescriptors) -> int:
    """Set up descriptors 0 to 3 and close all others; return the report descriptor."""
    # Duplicated to high numbers first: they may have the numbers that the others need.
    report_fd = fcntl.fcntl(descriptors.report_fd, fcntl.F_DUPFD_CLOEXEC, 16)
    output_fd = fcntl.fcntl(descriptors.output_fd, fcntl.F_DUPFD_CLOEXEC, 16)
    input_fd = (
        os.open(os.devnull, os.O_RDONLY) if descriptors.input_fd < 0 else descriptors.input_fd
    )
    if descriptors.is_terminal:
        fcntl.ioctl(input_fd, termios.TIOCSCTTY, 0)
    os.dup2(input_fd, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.dup2(report_fd, REPORT_FD, inheritable=False)
    os.closerange(REPORT_FD + 1, 2**31 - 1)
    return REPORT_FD


def set_size(terminal_fd: int, rows: int, columns: int) -> None:
    """Set the size of a terminal; its foreground processes get SIGWINCH."""
    fcntl.ioctl(terminal_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@dataclass
class ChildProcess:
    """A process, from its fork until it is forgotten."""

    id: str
    workspace: str
    number: int
    pid: int
    output_fd: int
    input_fd: int  # -1 if there is none, or it was closed.
    report_fd: int  # -1 once the child has executed the program, or failed.
    give_up_at: float = 0.0
    report: bytes = b""
    layers: list[int] = field(default_factory=list)
    failure: dict[str, Any] | None = None
    status: int | None = None
    has_memory_limit: bool = False  # A control group enforces a memory limit on it.
    is_oom_killed: bool = False
    deaths_before: int = 0  # OOM kills of its workspace, when it started.

    @property
    def descriptors(self) -> list[int]:
        """The descriptors that are sent to the service."""
        return [fd for fd in (self.output_fd, self.input_fd) if fd >= 0]
