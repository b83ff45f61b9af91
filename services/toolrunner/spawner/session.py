"""The protocol between the service and the spawner.

In:  {"number", "op": "start", "id", "workspace", "user", "argv", "root", "workdir",
      "environment", "has_input", "terminal": [rows, columns] or null,
      "confinement": that of the sandbox, or null, "limits": {name: number}, "required": [name],
      "mark": one that it cannot remove, or ""}
     {"number", "op": "signal", "id", "signal", "leader_only", "tell_gone"}
     {"number", "op": "end", "signal"}
     {"number", "op": "end_workspace", "workspace", "directory", "signal", "tell_gone"}
     {"number", "op": "signal_marked", "workspace", "directory", "mark", "signal"}
     {"number", "op": "socket_use", "workspace"}
     {"op": "give_way", "workspace", "yields"}
     {"op": "close_input", "id"}, {"op": "forget", "id"}
     {"number", "op": "adopt", "secret"}, {"op": "quit"}
Out: {"number", "pid", "layers", "descriptors"}, {"number", "stage", "errno"}, {"number", "count"},
     {"adopted": id, "pid", "status", "layers", "is_oom_killed", "stage", "errno", "descriptors"},
     {"number", "version", "pid"}, {"exited": id, "status", "is_oom_killed"}, {"gone": id},
     {"idle": true}, {"door": workspace, "descriptors"},
     {"number", "total_bytes", "largest": [[inode, bytes]]}
"""

import os
import selectors
import socket
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolrunner.spawner.adoption import AdoptionSocket, Candidate
from toolrunner.spawner.child import ChildProcess
from toolrunner.spawner.children import ChildProcesses
from toolrunner.spawner.frames import CHUNK_BYTES, FrameChannel, Frames
from toolrunner.spawner.start_queue import StartQueue

#: Spawners and services of different versions are incompatible.
VERSION = 7
#: Pause after an unexpected failure.
FAILED_S = 0.1
#: When something that is due is tried again after it failed unexpectedly.
RETRY_S = 1.0


@dataclass
class SpawnerSession:
    """The connection to one service at a time: the one that started us, or its successor."""

    service: FrameChannel
    child_processes: ChildProcesses
    selector: selectors.BaseSelector
    adoption_socket: AdoptionSocket | None
    adoption_s: float
    frames: Frames = field(default_factory=Frames)
    starts: StartQueue = field(default_factory=StartQueue)
    is_over: bool = False
    give_up_at: float | None = None
    #: When each duty that failed is due again.
    retry_at: dict[str, float] = field(default_factory=dict)

    def run(self, wakeup_fd: int) -> None:
        """Serve until `quit`, or until no service adopted the program in time."""
        listener = None if self.adoption_socket is None else self.adoption_socket.listener
        for source in (self.service.channel, listener, wakeup_fd):
            if source is not None:
                self.selector.register(source, selectors.EVENT_READ, source)
        while not self.is_over:
            left_s = self.left_s()
            if self.give_up_at is not None and self.give_up_at <= time.monotonic():
                return
            for key, _ in self.selector.select(0 if self.starts else left_s):
                self.survive(partial(self.handle, key, wakeup_fd))
            if self.starts:
                # One only: until the next, other users may ask for theirs.
                self.survive(lambda: self.obey(self.starts.take()))

    def survive(self, work: Callable[[], None]) -> None:
        """Do some work; an unexpected failure is printed, as all processes would end with it."""
        try:
            work()
        except Exception:
            print_failure()
            time.sleep(FAILED_S)  # noqa: TID251 (what failed may be ready again at once)

    def handle(self, key: selectors.SelectorKey, wakeup_fd: int) -> None:
        """Handle one ready source."""
        if key.fd == wakeup_fd:
            os.read(wakeup_fd, CHUNK_BYTES)
            self.child_processes.reap()
        elif isinstance(key.data, ChildProcess):
            self.child_processes.settle(key.data)
        elif key.data is self.service.channel:
            self.listen()
        elif self.adoption_socket is not None:
            self.serve_adoption(self.adoption_socket, key.data)

    def left_s(self) -> float | None:
        """Do what is due, and return the time until the next deadline; None if there is none."""
        namespace_sets = self.child_processes.process_index.namespace_sets
        times = (
            self.give_up_at,
            self.attempt("candidates", self.send_late_away),
            self.attempt("starts", self.child_processes.end_late),
            self.attempt("namespace sets", namespace_sets.end_rested),
        )
        next_at = min((each for each in times if each is not None), default=None)
        return None if next_at is None else max(0.0, next_at - time.monotonic())

    def attempt(self, name: str, duty: Callable[[float], float | None]) -> float | None:
        """Do what is due and return when the next is; after an unexpected failure, later again."""
        now_s = time.monotonic()
        if self.retry_at.get(name, now_s) > now_s:
            return self.retry_at[name]
        self.retry_at.pop(name, None)
        try:
            return duty(now_s)
        except Exception:
            # All processes of the node would end with this program.
            print_failure()
            self.retry_at[name] = now_s + RETRY_S
            return self.retry_at[name]

    def send_late_away(self, _now_s: float) -> float | None:
        """Close the candidates whose time limit has passed; return when the next one expires."""
        if self.adoption_socket is None:
            return None
        self.adoption_socket.send_late_away()
        return self.adoption_socket.closes_at

    def listen(self) -> bool:
        """Process messages of the service; EOF begins the wait for the next service.

        Returns whether more may be readable.
        """
        assert self.service.channel is not None
        try:
            data = self.service.channel.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self.hang_up()
            return False
        for message in self.frames.feed(data):
            self.receive(message)
        return True

    def receive(self, message: dict[str, Any]) -> None:
        """Queue a start; handle any other request, after the starts that come before it."""
        if message["op"] == "start":
            self.starts.put(message)
            return
        for start in self.starts.take_before(message):
            self.obey(start)
        self.obey(message)

    def hang_up(self) -> None:
        """Wait for the next service, if any process is kept or runs."""
        while self.starts:
            # It is in the journal of the service, and the next one looks for it here.
            self.obey(self.starts.take())
        if self.service.channel is not None:
            self.selector.unregister(self.service.channel)
            self.service.channel.close()
        self.service.channel, self.frames = None, Frames()
        self.child_processes.unbind()
        # Without an adoption socket no service can connect.
        self.give_up_at = time.monotonic() + (self.adoption_s if self.adoption_socket else 0)
        if self.child_processes.is_empty:
            self.is_over = True

    def serve_adoption(self, adoption_socket: AdoptionSocket, source: object) -> None:
        """Handle an event of the adoption socket; while a service is connected, refuse it."""
        # The EOF of the old service may be unread, after all its messages.
        while self.service.channel is not None and self.listen():
            pass
        if not isinstance(source, Candidate):
            if self.service.channel is None:
                adoption_socket.admit()
            else:
                adoption_socket.refuse()
            return
        if source not in adoption_socket.candidates:
            return
        if self.service.channel is not None:
            adoption_socket.send_away(source)
        elif (message := adoption_socket.hear(source)) is not None:
            self.service.channel, self.frames = source.channel, source.frames
            self.give_up_at = None
            self.selector.register(source.channel, selectors.EVENT_READ, source.channel)
            self.obey(message)

    def obey(self, message: dict[str, Any]) -> None:
        """Handle a request; if it fails unexpectedly, answer with an error and continue."""
        try:
            self.do(message)
        except Exception as error:
            print_failure()
            if "number" in message:
                number = (isinstance(error, OSError) and error.errno) or 0
                failure = {"stage": "spawner", "errno": number, "count": 0}
                self.service.tell({"number": message["number"], **failure})

    def do(self, message: dict[str, Any]) -> None:
        """Dispatch a request by its `op`."""
        match message["op"]:
            case "start":
                self.child_processes.start(message)
            case "signal":
                self.child_processes.signal(message)
            case "end":
                self.child_processes.end(message)
            case "end_workspace":
                self.child_processes.end_workspace(message)
            case "signal_marked":
                self.child_processes.signal_marked(message)
            case "socket_use":
                self.child_processes.tell_sockets(message)
            case "give_way":
                self.child_processes.give_way(message["workspace"], yields=message["yields"])
            case "close_input":
                self.child_processes.close_input(message["id"])
            case "forget":
                self.child_processes.forget(message["id"])
            case "adopt":
                self.hand_over(message)
            case "quit":
                self.is_over = True

    def hand_over(self, message: dict[str, Any]) -> None:
        """Send all kept processes to a new service, which has measured none of them yet."""
        self.child_processes.groups.none_gives_way()
        self.child_processes.control_groups_v1.none_gives_way()
        self.child_processes.tell_kept()
        self.service.tell({"number": message["number"], "version": VERSION, "pid": os.getpid()})


def print_failure() -> None:
    """Print the exception that is being handled; a full disk or a closed pipe is ignored."""
    with suppress(OSError, ValueError):
        traceback.print_exc()
