"""What the service says to the spawner and hears from it.

In:  {"number", "op": "start", "id", "workspace", "argv", "root", "workdir", "environment",
      "has_input", "terminal": [rows, columns] or null,
      "confinement": {"launcher", "environment", "is_reporting"}}
     {"number", "op": "signal", "id", "signal", "leader_only", "tell_gone"}
     {"number", "op": "end", "signal"}
     {"number", "op": "end_workspace", "workspace", "directory", "signal", "tell_gone"}
     {"number", "op": "close_input", "id"}, {"number", "op": "forget", "id"}
     {"number", "op": "adopt"}, {"op": "quit"}
Out: {"number", "pid", "descriptors"}, {"number", "stage", "errno"}, {"number", "count"},
     {"adopted": id, "pid", "status", "stage", "errno", "descriptors"},
     {"number", "version", "pid"}, {"exited": id, "status"}, {"gone": id}, {"idle": true}
"""

import os
import selectors
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolrunner.spawner.family import Family, Kept
from toolrunner.spawner.frames import CHUNK_BYTES, Frames, Line

#: Spawners and services of different versions do not understand one another.
VERSION = 1
CREDENTIALS = struct.Struct("3i")


@dataclass
class Conversation:
    """One service at a time: the one that started this program, or the next after its end."""

    line: Line
    family: Family
    selector: selectors.BaseSelector
    listener: socket.socket | None
    adoption_s: float
    frames: Frames = field(default_factory=Frames)
    is_over: bool = False
    give_up_at: float | None = None

    def run(self, wakeup_fd: int) -> None:
        """Serve until told to quit, or until nobody came to take over."""
        for source in (self.line.channel, self.listener, wakeup_fd):
            if source is not None:
                self.selector.register(source, selectors.EVENT_READ, source)
        while not self.is_over:
            left_s = None if self.give_up_at is None else self.give_up_at - time.monotonic()
            if left_s is not None and left_s <= 0:
                return
            for key, _ in self.selector.select(left_s):
                if key.fd == wakeup_fd:
                    os.read(wakeup_fd, CHUNK_BYTES)
                    self.family.reap()
                elif self.listener is not None and key.data is self.listener:
                    self.accept(self.listener)
                elif isinstance(key.data, Kept):
                    self.family.settle(key.data)
                elif key.data is self.line.channel:
                    self.listen()

    def listen(self) -> bool:
        """Take what the service says; its silent end begins the wait for the next one.

        Returns whether it may have more to say.
        """
        assert self.line.channel is not None
        try:
            data = self.line.channel.recv(CHUNK_BYTES, socket.MSG_DONTWAIT)
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
        if self.line.channel is not None:
            self.selector.unregister(self.line.channel)
            self.line.channel.close()
        self.line.channel, self.frames = None, Frames()
        self.family.unbind()
        # Where it cannot listen, nobody can find it.
        self.give_up_at = time.monotonic() + (self.adoption_s if self.listener else 0)
        if self.family.is_empty:
            self.is_over = True

    def accept(self, listener: socket.socket) -> None:
        """Take a new service for the old one, if that is gone and this is none of our own."""
        with suppress(OSError):
            channel, _ = listener.accept()
            # The end of the old one may be waiting to be read, behind all that it said before.
            while self.line.channel is not None and self.listen():
                pass
            if self.line.channel is not None or not self.is_trusted(channel):
                channel.close()
                return
            self.line.channel, self.give_up_at = channel, None
            self.selector.register(channel, selectors.EVENT_READ, channel)

    def is_trusted(self, channel: socket.socket) -> bool:
        """Tell whether whoever connects is our user, and nobody whom we started."""
        data = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
        pid, uid, _ = CREDENTIALS.unpack(data)
        ours = {each.pid for each in self.family.kin.everything()}
        return bool(pid) and uid == os.getuid() and pid not in ours

    def obey(self, message: dict[str, Any]) -> None:
        """Do what is asked."""
        number = message.get("number")
        match message["op"]:
            case "start":
                self.family.start(message)
            case "signal":
                self.family.signal(message)
            case "end":
                self.family.end(message)
            case "end_workspace":
                self.family.end_workspace(message)
            case "close_input":
                self.family.close_input(message["id"])
                self.line.tell({"number": number, "count": 1})
            case "forget":
                self.family.forget(message["id"])
                self.line.tell({"number": number, "count": 1})
            case "adopt":
                self.hand_over(message)
            case "quit":
                self.is_over = True

    def hand_over(self, message: dict[str, Any]) -> None:
        """Tell a new service of everything that is kept."""
        self.family.tell_kept()
        self.line.tell({"number": message["number"], "version": VERSION, "pid": os.getpid()})
