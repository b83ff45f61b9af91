"""The spawner itself: what it is asked over a socket, what it starts, and what it keeps.

Theory: forking a process that has threads, as a gRPC server does, copies locks that nobody will
release. So the service starts this program first and asks it over a socket, in frames of a length
and JSON; descriptors travel beside the answers. It is the reaper of all that it started and of what
those left behind, so it learns every death, and `waitpid` saying that there is no child means that
nothing is left.

It keeps the descriptors and the exits of processes until it is told to forget them. When the socket
ends without a word the service was killed: then this program waits for the next one, which finds it
by a socket in the data directory and gets everything that is kept. If none comes in time, or if it
is told to quit, it kills everything and ends. It takes a connection from nobody whom it started.

In:  {"number", "op": "start", "id", "workspace", "argv", "root", "workdir", "environment",
      "has_input", "terminal": [rows, columns] or null}
     {"number", "op": "signal", "id", "signal", "leader_only", "tell_gone"}
     {"number", "op": "end", "signal"}
     {"number", "op": "end_workspace", "workspace", "directory", "signal", "tell_gone"}
     {"number", "op": "close_input", "id"}, {"number", "op": "forget", "id"}
     {"number", "op": "adopt"}, {"op": "quit"}
Out: {"number", "pid", "descriptors"}, {"number", "stage", "errno"}, {"number", "count"},
     {"adopted": id, "pid", "status", "stage", "errno", "descriptors"},
     {"number", "version", "pid"}, {"exited": id, "status"}, {"gone": id}, {"idle": true}
"""

import json
import os
import resource
import selectors
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolrunner.spawner.child import STOP_SIGNALS, Ends, become, set_size
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.frames import CHUNK_BYTES, Frames, frame
from toolrunner.spawner.kernel import (
    PR_SET_CHILD_SUBREAPER,
    PR_SET_DUMPABLE,
    Seen,
    children_of,
    descendants,
    end_descendants,
    freeze,
    is_marked,
    is_working_in,
    prctl,
    running_processes,
    send,
)

#: Spawners and services of different versions do not understand one another.
VERSION = 1
SOCKET_NAME = "spawner.sock"
CREDENTIALS = struct.Struct("3i")
OPEN_FILES_MAX = 65536


@dataclass
class Kept:
    """A process, from its fork until it is forgotten."""

    id: str
    workspace: str
    number: int
    pid: int
    output_fd: int
    input_fd: int  # -1 if there is none, or it was closed.
    report_fd: int  # -1 once the child has become what it should, or could not.
    failure: dict[str, Any] | None = None
    status: int | None = None

    @property
    def descriptors(self) -> list[int]:
        """What travels to the service."""
        return [fd for fd in (self.output_fd, self.input_fd) if fd >= 0]


@dataclass
class Spawner:
    """Everything the program knows."""

    channel: socket.socket | None
    listener: socket.socket | None
    adoption_s: float
    groups: ControlGroups
    open_files: tuple[int, int]
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    frames: Frames = field(default_factory=Frames)
    kept: dict[str, Kept] = field(default_factory=dict)
    leaders: dict[int, str] = field(default_factory=dict)  # Those that run, by pid.
    pids: dict[str, tuple[str, int]] = field(default_factory=dict)  # Workspace and leader.
    watched: dict[str, Callable[[], list[Seen]]] = field(default_factory=dict)
    is_ending: bool = False
    is_over: bool = False
    give_up_at: float | None = None

    def run(self, wakeup_fd: int) -> None:
        """Serve until told to quit, or until nobody came to take over."""
        for source in (self.channel, self.listener, wakeup_fd):
            if source is not None:
                self.selector.register(source, selectors.EVENT_READ, source)
        while not self.is_over:
            left_s = None if self.give_up_at is None else self.give_up_at - time.monotonic()
            if left_s is not None and left_s <= 0:
                return
            for key, _ in self.selector.select(left_s):
                if key.fd == wakeup_fd:
                    os.read(wakeup_fd, CHUNK_BYTES)
                    self.reap()
                elif self.listener is not None and key.data is self.listener:
                    self.accept(self.listener)
                elif isinstance(key.data, Kept):
                    self.settle(key.data)
                elif key.data is self.channel:
                    self.listen()

    def listen(self) -> bool:
        """Take what the service says; its silent end begins the wait for the next one.

        Returns whether it may have more to say.
        """
        assert self.channel is not None
        try:
            data = self.channel.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self.hang_up()
            return False
        for message in self.frames.feed(data):
            self.obey(message)
        return True

    def hang_up(self) -> None:
        """Wait for the next service, if there is anything to hand over."""
        if self.channel is not None:
            self.selector.unregister(self.channel)
            self.channel.close()
        self.channel, self.frames = None, Frames()
        for kept in self.kept.values():
            kept.number = 0
        # Where it cannot listen, nobody can find it.
        self.give_up_at = time.monotonic() + (self.adoption_s if self.listener else 0)
        if not self.kept and not self.everything():
            self.is_over = True

    def accept(self, listener: socket.socket) -> None:
        """Take a new service for the old one, if that is gone and this is none of our own."""
        with suppress(OSError):
            channel, _ = listener.accept()
            # The end of the old one may be waiting to be read, behind all that it said before.
            while self.channel is not None and self.listen():
                pass
            if self.channel is not None or not self.is_trusted(channel):
                channel.close()
                return
            self.channel, self.give_up_at = channel, None
            self.selector.register(channel, selectors.EVENT_READ, channel)

    def is_trusted(self, channel: socket.socket) -> bool:
        """Tell whether whoever connects is our user, and nobody whom we started."""
        data = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid, uid, _ = CREDENTIALS.unpack(data)
        ours = {each.pid for each in self.everything()}
        return bool(pid) and uid == os.getuid() and pid not in ours

    def tell(self, message: dict[str, Any], *descriptors: int) -> None:
        """Send a message, with descriptors beside its first byte, if anyone is there."""
        if self.channel is None:
            return
        data = frame(message)
        with suppress(ConnectionError):
            sent = socket.send_fds(self.channel, [data], list(descriptors)) if descriptors else 0
            self.channel.sendall(data[sent:])

    def obey(self, message: dict[str, Any]) -> None:
        """Do what is asked."""
        number = message.get("number")
        match message["op"]:
            case "start":
                self.start(message)
            case "signal":
                self.signal(message)
            case "end":
                self.is_ending = True
                count = self.signal_all(self.everything, message["signal"])
                self.tell({"number": number, "count": count})
                self.reap()
            case "end_workspace":
                self.end_workspace(message)
            case "close_input":
                self.close_input(message["id"])
                self.tell({"number": number, "count": 1})
            case "forget":
                self.forget(message["id"])
                self.tell({"number": number, "count": 1})
            case "adopt":
                self.hand_over(message)
            case "quit":
                self.is_over = True

    def start(self, message: dict[str, Any]) -> None:
        """Fork; the answer follows when the child has become what it should, or could not."""
        opened: list[int] = []
        try:
            ends, kept = self.connections(message, opened)
            group = self.groups.make(message["workspace"], message["id"])
            parent = os.getpid()
            pid = os.fork()
        except OSError as error:
            for fd in opened:
                os.close(fd)
            self.tell({"number": message["number"], "stage": "fork", "errno": error.errno})
            return
        if pid == 0:
            become(message, parent, ends, group, self.open_files)
        for fd in {ends.input_fd, ends.output_fd, ends.report_fd} - {-1}:
            os.close(fd)
        kept.pid = pid
        # A pid that comes again is no longer the process it was.
        self.pids = {id: known for id, known in self.pids.items() if known[1] != pid}
        self.kept[kept.id] = kept
        self.pids[kept.id] = (kept.workspace, pid)
        self.leaders[pid] = kept.id
        self.selector.register(kept.report_fd, selectors.EVENT_READ, kept)

    def connections(self, message: dict[str, Any], opened: list[int]) -> tuple[Ends, Kept]:
        """Make what connects a child; everything that was opened is noted as soon as it is."""

        def pair(make: Callable[[], tuple[int, int]]) -> tuple[int, int]:
            made = make()
            opened.extend(made)
            return made

        def pipe() -> tuple[int, int]:
            return os.pipe2(os.O_CLOEXEC)

        report_fd, report_end = pair(pipe)
        if message["terminal"]:
            output_fd, output_end = pair(os.openpty)
            set_size(output_fd, *message["terminal"])
            input_end, input_fd = output_end, os.dup(output_fd)
            opened.append(input_fd)
        else:
            output_fd, output_end = pair(pipe)
            input_end, input_fd = pair(pipe) if message["has_input"] else (-1, -1)
        ends = Ends(input_end, output_end, report_end, bool(message["terminal"]))
        kept = Kept(
            message["id"],
            message["workspace"],
            message["number"],
            0,
            output_fd,
            input_fd,
            report_fd,
        )
        return ends, kept

    def settle(self, kept: Kept) -> None:
        """Answer a start: the report ends empty at exec, or says what went wrong."""
        if kept.report_fd < 0:
            return
        report = os.read(kept.report_fd, CHUNK_BYTES)
        self.selector.unregister(kept.report_fd)
        os.close(kept.report_fd)
        kept.report_fd = -1
        if report:
            kept.failure = json.loads(report)
            self.leaders.pop(kept.pid, None)
            self.tell({"number": kept.number, **json.loads(report)})
        else:
            message = {"number": kept.number, "pid": kept.pid}
            message["descriptors"] = len(kept.descriptors)
            self.tell(message, *kept.descriptors)

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
            kept = self.kept.get(self.leaders.get(pid, ""))
            if kept is not None:
                self.settle(kept)
            if self.leaders.pop(pid, None) is not None and kept is not None:
                kept.status = status
                self.tell({"exited": kept.id, "status": status})
        for name in [name for name, find in self.watched.items() if not find()]:
            del self.watched[name]
            self.tell({"gone": name})
        if is_idle and self.is_ending:
            self.tell({"idle": True})

    def signal(self, message: dict[str, Any]) -> None:
        """Signal a process and all it started, or its leader only while that is not reaped."""
        process_id, number = message["id"], message["signal"]
        if message["leader_only"]:
            leader = self.pids.get(process_id, ("", 0))[1]
            count = int(self.leaders.get(leader) == process_id and send(leader, number))
        else:
            count = self.signal_all(lambda: self.members(process_id), number)
            if number == signal.SIGKILL and process_id in self.pids:
                self.groups.kill(self.pids[process_id][0], process_id)
        if message["tell_gone"]:
            self.watched[process_id] = lambda: self.members(process_id)
            self.wake(self.members(process_id), number)
        self.tell({"number": message["number"], "count": count})
        self.reap()

    def end_workspace(self, message: dict[str, Any]) -> None:
        """Signal everything of a workspace."""
        workspace, directory = message["workspace"], message["directory"]

        def find() -> list[Seen]:
            return self.inhabitants(workspace, directory)

        count = self.signal_all(find, message["signal"])
        if message["signal"] == signal.SIGKILL:
            self.groups.kill(workspace)
        if message["tell_gone"]:
            self.watched[workspace] = find
            self.wake(find(), message["signal"])
        self.tell({"number": message["number"], "count": count})
        self.reap()

    def signal_all(self, find: Callable[[], list[Seen]], number: int) -> int:
        """Signal all that are found and return how many; those to be killed are stopped first."""
        pids = freeze(find) if number == signal.SIGKILL else [each.pid for each in find()]
        return sum(send(pid, number) for pid in pids)

    def wake(self, stopped: list[Seen], number: int) -> None:
        """Let those go on who could not end because they are stopped."""
        if number in STOP_SIGNALS:
            for each in stopped:
                send(each.pid, signal.SIGCONT)

    def close_input(self, process_id: str) -> None:
        """Let a process read the end of its input, once the service has closed it too."""
        kept = self.kept.get(process_id)
        if kept is not None and kept.input_fd >= 0:
            os.close(kept.input_fd)
            kept.input_fd = -1

    def forget(self, process_id: str) -> None:
        """Keep no more of a process than it takes to find what it left behind."""
        kept = self.kept.pop(process_id, None)
        if kept is None:
            return
        for fd in kept.descriptors:
            os.close(fd)
        self.groups.remove(kept.workspace, process_id)
        children = children_of(os.getpid())
        if children is not None and children <= set(self.leaders):
            # Nobody was left behind by anyone.
            self.pids = {each.id: (each.workspace, each.pid) for each in self.kept.values()}

    def hand_over(self, message: dict[str, Any]) -> None:
        """Tell a new service of everything that is kept; what is between fork and exec is not."""
        for kept in self.kept.values():
            if kept.report_fd >= 0:
                os.set_blocking(kept.report_fd, True)
                self.settle(kept)
            told = {"adopted": kept.id, "pid": kept.pid, "status": kept.status}
            told["descriptors"] = len(kept.descriptors)
            self.tell({**told, **(kept.failure or {})}, *kept.descriptors)
        self.tell({"number": message["number"], "version": VERSION, "pid": os.getpid()})

    def everything(self) -> list[Seen]:
        """Return all that was ever started here and still runs."""
        return descendants(os.getpid(), running_processes())

    def members(self, process_id: str) -> list[Seen]:
        """Return those of a process: by group, session or mark, and what these started."""
        workspace, leader = self.pids.get(process_id, ("", 0))
        held = self.groups.pids(workspace, process_id) if workspace else set()
        return self.found(
            lambda each: (
                each.pid in held
                or leader in (each.pid, each.group, each.session)
                or is_marked(each.pid, process_id)
            )
        )

    def inhabitants(self, workspace: str, directory: str) -> list[Seen]:
        """Return those of a workspace: of its processes, of its group, or at work in its files."""
        held = self.groups.pids(workspace)
        own = {id: leader for id, (of, leader) in self.pids.items() if of == workspace}
        leaders = set(own.values())
        return self.found(
            lambda each: (
                each.pid in held
                or not leaders.isdisjoint((each.pid, each.group, each.session))
                or any(is_marked(each.pid, id) for id in own)
                or is_working_in(each.pid, directory)
            )
        )

    def found(self, is_meant: Callable[[Seen], bool]) -> list[Seen]:
        """Return those of ours that are meant, and what these started."""
        seen = running_processes()
        roots = [each for each in descendants(os.getpid(), seen) if is_meant(each)]
        found = {each.pid: each for root in roots for each in descendants(root.pid, seen)}
        return list({**found, **{root.pid: root for root in roots}}.values())


def socket_path(directory: int) -> str:
    """Return the path of the socket in an open directory; its real one may be too long."""
    return f"/proc/self/fd/{directory}/{SOCKET_NAME}"


def group_name(directory: int) -> str:
    """Return the name of the control group of everything that is started for a directory.

    Only one service works in it, so the next one finds what is left.
    """
    place = os.fstat(directory)
    return f"parley-{place.st_dev}-{place.st_ino}"


def listening(directory: int) -> socket.socket | None:
    """Listen in a directory, where a spawner that is gone may have left its socket.

    Not every file system has sockets; on such a one processes do not outlive the service.
    """
    with suppress(FileNotFoundError):
        os.unlink(SOCKET_NAME, dir_fd=directory)
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(socket_path(directory))
        listener.listen()
    except OSError as error:
        print(f"nobody can take over from here: {error}", file=sys.stderr)
        listener.close()
        return None
    listener.setblocking(False)
    return listener


def main() -> None:
    """Serve the socket that was inherited, and leave nothing behind."""
    channel_fd, directory_fd, adoption_s = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    prctl(PR_SET_DUMPABLE, 0)
    # The service decides when to end, also when someone signals the whole group.
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    wakeup_fd, wakeup_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.signal(signal.SIGCHLD, lambda number, stack: None)
    signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
    channel = socket.socket(fileno=channel_fd)
    channel.set_inheritable(False)
    os.set_inheritable(directory_fd, False)
    open_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    hard = open_files[1] if open_files[1] != resource.RLIM_INFINITY else OPEN_FILES_MAX
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, OPEN_FILES_MAX), open_files[1]))
    name = group_name(directory_fd)
    groups = ControlGroups.made(name) if int(sys.argv[4]) else ControlGroups("")
    listener = listening(directory_fd)
    try:
        Spawner(channel, listener, adoption_s, groups, open_files).run(wakeup_fd)
    finally:
        if listener is not None:
            listener.close()
        groups.kill()
        end_descendants(os.getpid())
        groups.remove()
