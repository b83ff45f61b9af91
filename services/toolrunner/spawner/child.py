"""The child between fork and exec: it turns into the program, or reports why not."""

import fcntl
import json
import os
import signal
import struct
import termios
from dataclasses import dataclass
from typing import Any, NoReturn

from toolrunner.spawner.control_groups import join
from toolrunner.spawner.kernel import PR_SET_PDEATHSIG, open_directory_beneath, prctl
from toolrunner.spawner.limits import limit_process

REPORT_FD = 3
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class Ends:
    """The child's ends of what connects it; with a terminal input and output are one."""

    input_fd: int  # -1 for nothing to read.
    output_fd: int
    report_fd: int
    is_terminal: bool


def become(
    message: dict[str, Any], parent: int, ends: Ends, group: str, open_files: tuple[int, int]
) -> NoReturn:
    """Turn into the program that a message names, or report why not."""
    stage, report_fd = "session", ends.report_fd
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        # Signals need nothing: what has a handler here is as by default after exec.
        os.umask(0o022)
        if group:
            stage = "group"
            join(group)
        stage = "workdir"
        os.fchdir(open_directory_beneath(message["root"], message["workdir"]))
        stage = "descriptors"
        report_fd = connect(ends)
        stage = "limits"
        limit_process(message["limits"], open_files)
        stage = "confinement" if message["confinement"]["launcher"] else "exec"
        execute(message)
    except OSError as error:
        os.write(report_fd, json.dumps({"stage": stage, "errno": error.errno}).encode())
    except BaseException:
        os.write(report_fd, json.dumps({"stage": stage, "errno": 0}).encode())
    finally:
        os._exit(127)


def execute(message: dict[str, Any]) -> NoReturn:
    """Become the program, or the launcher that confines itself and then becomes the program.

    The program's words follow those of the launcher. A launcher that reports gets `REPORT_FD`
    open: it closes it by becoming the program, or writes the stage and errno of what failed.
    """
    confinement, argv, environment = message["confinement"], message["argv"], message["environment"]
    if confinement["launcher"]:
        argv = [*confinement["launcher"], *argv]
        # What a program is told to do by its variables is not for whoever confines it.
        environment = confinement["environment"]
        os.set_inheritable(REPORT_FD, confinement["is_reporting"])
    os.execvpe(argv[0], argv, environment)


def connect(ends: Ends) -> int:
    """Put everything in its place and close the rest; return where the report went."""
    # Out of the way first: these may have the numbers that the others are to get.
    report_fd = fcntl.fcntl(ends.report_fd, fcntl.F_DUPFD_CLOEXEC, 16)
    output_fd = fcntl.fcntl(ends.output_fd, fcntl.F_DUPFD_CLOEXEC, 16)
    input_fd = os.open(os.devnull, os.O_RDONLY) if ends.input_fd < 0 else ends.input_fd
    if ends.is_terminal:
        fcntl.ioctl(input_fd, termios.TIOCSCTTY, 0)
    os.dup2(input_fd, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    os.dup2(report_fd, REPORT_FD, inheritable=False)
    os.closerange(REPORT_FD + 1, 2**31 - 1)
    return REPORT_FD


def set_size(terminal_fd: int, rows: int, columns: int) -> None:
    """Tell a terminal how large it is; who runs in it gets SIGWINCH."""
    fcntl.ioctl(terminal_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
