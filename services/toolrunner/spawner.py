"""The program that starts processes: one thread, standard library only.

Theory: forking a process that has threads, as a gRPC server does, copies locks that nobody will
release. So the service starts this program first and asks it over a socket, in frames of a length
and JSON; the read end of a process's output travels back beside the answer. It is the reaper of all
that it started and of what those left behind, so it learns every death, and `waitpid` saying that
there is no child means that nothing is left. When the socket ends it kills everything and ends.
It is run by its path, `python -I -S spawner.py FD`, so that nothing of the service is imported.

In:  {"number", "op": "start", "id", "argv", "root", "workdir", "environment", "has_channel"}
     {"number", "op": "signal", "id", "signal", "leader_only", "tell_gone"}
     {"number", "op": "end", "signal"}
Out: {"number", "pid"} with a descriptor, {"number", "stage", "errno"}, {"number", "count"},
     {"exited": id, "status"}, {"gone": id}, {"idle": true}
"""

import ctypes
import json
import os
import select
import selectors
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

#: The variable by which a process is known as one of ours, wherever it went.
PROCESS_MARK = "PARLEY_PROCESS_ID"

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_CHILD_SUBREAPER = 36
SYS_OPENAT2 = 437
RESOLVE_BENEATH = 0x08
LENGTH = struct.Struct(">I")
CHUNK_BYTES = 64 * 1024
FREEZE_ROUNDS_MAX = 100
KILL_ROUND_S = 0.01
KILL_ROUNDS_MAX = 500
REPORT_FD = 3
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Seen:
    """A process as /proc shows it."""

    pid: int
    parent: int
    group: int
    session: int


@dataclass
class Frames:
    """Cuts a stream of bytes into messages."""

    rest: bytes = b""

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield every message that is complete now."""
        self.rest += data
        while len(self.rest) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self.rest)[0]
            if len(self.rest) < end:
                return
            message, self.rest = self.rest[LENGTH.size : end], self.rest[end:]
            yield json.loads(message)


def frame(message: dict[str, Any]) -> bytes:
    """Return a message as it travels."""
    body = json.dumps(message).encode()
    return LENGTH.pack(len(body)) + body


def prctl(option: int, value: int) -> None:
    """Tell the kernel something about this process."""
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def open_directory_beneath(root: str, path: str) -> int:
    """Open a directory inside `root`; the kernel refuses whatever leads out of it (EXDEV)."""
    root_fd = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        how = struct.pack("QQQ", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, RESOLVE_BENEATH)
        target = os.fsencode(path or ".")
        opened: int = libc.syscall(SYS_OPENAT2, root_fd, target, how, len(how))
        if opened < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        return opened
    finally:
        os.close(root_fd)


def running_processes() -> list[Seen]:
    """Return all processes of the machine that are visible and not dead."""
    seen = []
    for name in os.listdir("/proc"):
        if not name.isdecimal():
            continue
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as stat:
            # The name in parentheses may hold anything, a parenthesis too.
            words = stat.read().rpartition(b")")[2].split()
            if words[0] not in (b"Z", b"X"):
                seen.append(Seen(int(name), int(words[1]), int(words[2]), int(words[3])))
    return seen


def descendants(ancestor: int, seen: list[Seen]) -> list[Seen]:
    """Return those that `ancestor` started, and those that these started."""
    children: dict[int, list[Seen]] = {}
    for each in seen:
        children.setdefault(each.parent, []).append(each)
    found = list(children.get(ancestor, ()))
    for each in found:
        found += children.get(each.pid, ())
    return found


def end_descendants(ancestor: int) -> None:
    """Kill and reap all that `ancestor`, this process, is the reaper of.

    A process that cannot be killed, because the kernel holds it, is given up after some seconds.
    """
    freeze(lambda: descendants(ancestor, running_processes()))
    for _ in range(KILL_ROUNDS_MAX):
        for each in descendants(ancestor, running_processes()):
            send(each.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            select.select([], [], [], KILL_ROUND_S)
            continue
        return


def freeze(find: Callable[[], list[Seen]]) -> list[int]:
    """Stop all that `find` finds, until it finds no more, and return them.

    Killing by a list does not catch up with what forks; what is stopped forks no more.
    """
    stopped: set[int] = set()
    for _ in range(FREEZE_ROUNDS_MAX):
        moving = {each.pid for each in find()} - stopped
        if not moving:
            break
        for pid in moving:
            send(pid, signal.SIGSTOP)
        stopped |= moving
    return list(stopped)


def send(pid: int, number: int) -> bool:
    """Send a signal; return whether there was someone to get it."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


@dataclass
class Starting:
    """A child between fork and exec."""

    number: int
    id: str
    pid: int
    output_fd: int
    report_fd: int


@dataclass
class Spawner:
    """Everything the program knows."""

    socket: socket.socket
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    frames: Frames = field(default_factory=Frames)
    starting: dict[int, Starting] = field(default_factory=dict)  # By pid.
    pids: dict[str, int] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    running: set[int] = field(default_factory=set)
    watched: set[str] = field(default_factory=set)
    is_ending: bool = False

    def run(self, wakeup_fd: int) -> None:
        """Serve until the socket ends."""
        self.selector.register(self.socket, selectors.EVENT_READ)
        self.selector.register(wakeup_fd, selectors.EVENT_READ)
        while True:
            for key, _ in self.selector.select():
                if key.fd == wakeup_fd:
                    os.read(wakeup_fd, CHUNK_BYTES)
                    self.reap()
                elif key.fd == self.socket.fileno():
                    data = self.socket.recv(CHUNK_BYTES)
                    if not data:
                        return
                    for message in self.frames.feed(data):
                        self.obey(message)
                elif isinstance(key.data, Starting) and key.data.pid in self.starting:
                    self.settle(key.data)

    def tell(self, message: dict[str, Any], *descriptors: int) -> None:
        """Send a message, with descriptors beside its first byte."""
        data = frame(message)
        sent = socket.send_fds(self.socket, [data], list(descriptors)) if descriptors else 0
        self.socket.sendall(data[sent:])

    def obey(self, message: dict[str, Any]) -> None:
        """Do what is asked."""
        match message["op"]:
            case "start":
                self.start(message)
            case "signal":
                self.signal(message)
            case "end":
                self.is_ending = True
                targets = self.targets(self.everything, message["signal"])
                count = sum(send(pid, message["signal"]) for pid in targets)
                self.tell({"number": message["number"], "count": count})
                self.reap()

    def start(self, message: dict[str, Any]) -> None:
        """Fork; the answer follows when the child has become what it should, or could not."""
        output_fd, output_end = channel() if message["has_channel"] else os.pipe2(os.O_CLOEXEC)
        report_fd, report_end = os.pipe2(os.O_CLOEXEC)
        parent = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(output_fd)
            os.close(report_fd)
            answer = {"number": message["number"], "stage": "fork", "errno": error.errno}
            self.tell(answer)
            return
        finally:
            # The child leaves this function only through exec or its end.
            if os.getpid() == parent:
                os.close(output_end)
                os.close(report_end)
        if pid == 0:
            become(message, parent, output_end, report_end)
        starting = Starting(message["number"], message["id"], pid, output_fd, report_fd)
        self.starting[pid] = starting
        # A pid that comes again is no longer the process it was.
        self.pids.pop(self.ids.pop(pid, ""), None)
        self.ids[pid] = starting.id
        self.pids[starting.id] = pid
        self.running.add(pid)
        self.selector.register(report_fd, selectors.EVENT_READ, starting)

    def settle(self, starting: Starting) -> None:
        """Answer a start: the report ends empty at exec, or says what went wrong."""
        report = os.read(starting.report_fd, CHUNK_BYTES)
        self.selector.unregister(starting.report_fd)
        os.close(starting.report_fd)
        del self.starting[starting.pid]
        if report:
            self.running.discard(starting.pid)
            self.tell({"number": starting.number, **json.loads(report)})
        else:
            self.tell({"number": starting.number, "pid": starting.pid}, starting.output_fd)
        os.close(starting.output_fd)

    def reap(self) -> None:
        """Take every death there is and tell those that somebody waits for."""
        is_idle = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                is_idle = True
                break
            if pid == 0:
                break
            if pid in self.starting:
                self.settle(self.starting[pid])
            if pid in self.running:
                self.running.discard(pid)
                self.tell({"exited": self.ids[pid], "status": status})
        for process_id in [each for each in self.watched if not self.members(each)]:
            self.watched.discard(process_id)
            self.tell({"gone": process_id})
        if is_idle and self.is_ending:
            self.tell({"idle": True})

    def signal(self, message: dict[str, Any]) -> None:
        """Signal a process and all it started, or its leader only while that is not reaped."""
        process_id, number = message["id"], message["signal"]
        if message["leader_only"]:
            leader = self.pids.get(process_id, 0)
            targets = [leader] if leader in self.running else []
        else:
            targets = self.targets(lambda: self.members(process_id), number)
        count = sum(send(pid, number) for pid in targets)
        if message["tell_gone"]:
            self.watched.add(process_id)
        self.tell({"number": message["number"], "count": count})
        self.reap()

    def targets(self, find: Callable[[], list[Seen]], number: int) -> list[int]:
        """Return whom to send a signal; those to be killed are stopped."""
        return freeze(find) if number == signal.SIGKILL else [each.pid for each in find()]

    def everything(self) -> list[Seen]:
        """Return all that was ever started here and still runs."""
        return descendants(os.getpid(), running_processes())

    def members(self, process_id: str) -> list[Seen]:
        """Return those of a process: by group, session or mark, and what these started."""
        seen = running_processes()
        ours = descendants(os.getpid(), seen)
        leader = self.pids.get(process_id, 0)
        roots = [
            each
            for each in ours
            if leader in (each.pid, each.group, each.session) or is_marked(each.pid, process_id)
        ]
        found = {each.pid: each for root in roots for each in descendants(root.pid, seen)}
        return list({**found, **{root.pid: root for root in roots}}.values())


def channel() -> tuple[int, int]:
    """Return both ends of a socket: standard input of a program that is asked and answers."""
    ours, theirs = socket.socketpair()
    return ours.detach(), theirs.detach()


def is_marked(pid: int, process_id: str) -> bool:
    """Tell whether a process was started with the mark of another."""
    mark = f"{PROCESS_MARK}={process_id}".encode()
    with suppress(OSError), open(f"/proc/{pid}/environ", "rb") as environ:
        return mark in environ.read().split(b"\0")
    return False


def become(message: dict[str, Any], parent: int, output_fd: int, report_fd: int) -> NoReturn:
    """In the child: turn into the program, or report why not."""
    stage = "session"
    try:
        os.setsid()
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for number in (*STOP_SIGNALS, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.umask(0o022)
        stage = "workdir"
        os.fchdir(open_directory_beneath(message["root"], message["workdir"]))
        stage = "descriptors"
        nowhere = os.open(os.devnull, os.O_RDWR)
        os.dup2(output_fd if message["has_channel"] else nowhere, 0)
        os.dup2(nowhere if message["has_channel"] else output_fd, 1)
        os.dup2(1, 2)
        if report_fd != REPORT_FD:
            os.dup2(report_fd, REPORT_FD, inheritable=False)
            report_fd = REPORT_FD
        os.closerange(REPORT_FD + 1, 2**31 - 1)
        stage = "exec"
        argv = message["argv"]
        os.execvpe(argv[0], argv, message["environment"])
    except OSError as error:
        os.write(report_fd, json.dumps({"stage": stage, "errno": error.errno}).encode())
    except BaseException:
        os.write(report_fd, json.dumps({"stage": stage, "errno": 0}).encode())
    finally:
        os._exit(127)


def main() -> None:
    """Serve the socket that was inherited, and leave nothing behind."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)
    # The service decides when to end, also when someone signals the whole group.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    wakeup_fd, wakeup_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda number, stack: None)
    signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
    channel = socket.socket(fileno=int(sys.argv[1]))
    channel.set_inheritable(False)
    try:
        with suppress(ConnectionError):
            Spawner(channel).run(wakeup_fd)
    finally:
        end_descendants(os.getpid())


if __name__ == "__main__":
    main()
