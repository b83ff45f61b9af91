"""Who may take over: the next service, and nobody whom this program started.

Theory: whoever connects is believed after three things. The kernel says that it is our user, that
it is alive and that it is none of ours; a process that connected and died, leaving the connection
to another one, is therefore nobody. It shows the secret, which is in a file that only our user may
read, and that is out of reach of whatever is confined. And it does so soon. Until then it is
nothing more than a candidate, and does not keep a better one out.
"""

import os
import select
import selectors
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from toolrunner.spawner.frames import Frames
from toolrunner.spawner.kernel import Seen, look

CREDENTIALS = struct.Struct("3i")
#: Tells who connected even when its pid has been given to another; Linux 6.5 and newer.
SO_PEERPIDFD = 77
CANDIDATES_MAX = 16
CANDIDATE_S = 5.0
FIRST_WORD_BYTES = 4096
LOOKS_MAX = 5


@dataclass
class Candidate:
    """Someone who has connected and not yet shown the secret."""

    channel: socket.socket
    give_up_at: float
    frames: Frames = field(default_factory=Frames)
    heard_bytes: int = 0


@dataclass
class AdoptionSocket:
    """Where the next service comes in."""

    listener: socket.socket
    secret: str
    selector: selectors.BaseSelector
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def closes_at(self) -> float | None:
        """When the first of the candidates has had its time."""
        return min((each.give_up_at for each in self.candidates), default=None)

    def refuse(self) -> None:
        """Take nobody now."""
        with suppress(OSError):
            self.listener.accept()[0].close()

    def admit(self) -> None:
        """Let someone show the secret, if the kernel says nothing against them."""
        with suppress(OSError):
            channel, _ = self.listener.accept()
            if len(self.candidates) >= CANDIDATES_MAX or not is_stranger(channel):
                channel.close()
                return
            candidate = Candidate(channel, time.monotonic() + CANDIDATE_S)
            self.candidates.append(candidate)
            self.selector.register(channel, selectors.EVENT_READ, candidate)

    def hear(self, candidate: Candidate) -> dict[str, Any] | None:
        """Return the first word of someone who showed the secret; all others are sent away."""
        try:
            data = candidate.channel.recv(FIRST_WORD_BYTES, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        candidate.heard_bytes += len(data)
        message = None
        with suppress(ValueError):
            message = next(candidate.frames.feed(data), None)
        if message is not None and self.is_right(message) and is_stranger(candidate.channel):
            self.leave(candidate)
            return message
        if message is not None or not data or candidate.heard_bytes > FIRST_WORD_BYTES:
            self.send_away(candidate)
        return None

    def is_right(self, message: object) -> bool:
        """Tell whether a first word shows the secret."""
        # It takes some memory, and is needed once in the life of a program, if ever.
        from hmac import compare_digest

        match message:
            case {"op": "adopt", "number": int(), "secret": str(shown)}:
                return compare_digest(shown.encode(), self.secret.encode())
            case _:
                return False

    def send_late_away(self) -> None:
        """Have done with those who have had their time."""
        now = time.monotonic()
        for candidate in [each for each in self.candidates if each.give_up_at <= now]:
            self.send_away(candidate)

    def send_away(self, candidate: Candidate) -> None:
        """Hang up on someone."""
        self.leave(candidate)
        candidate.channel.close()

    def leave(self, candidate: Candidate) -> None:
        """Look after someone no longer."""
        self.selector.unregister(candidate.channel)
        self.candidates.remove(candidate)

    def close(self) -> None:
        """Let nobody in any more."""
        for candidate in list(self.candidates):
            self.send_away(candidate)
        self.listener.close()


def is_stranger(channel: socket.socket) -> bool:
    """Tell whether whoever connected is our user, alive, and nobody whom this program started."""
    data = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    pid, uid, _ = CREDENTIALS.unpack(data)
    if pid <= 0 or uid != os.getuid():
        return False
    try:
        pid_fd = peer_of(channel, pid)
    except OSError:
        return False
    try:
        is_ours = is_below(pid, os.getpid())
        # Only now: while it lives its pid is its own, and so is what was found out about it.
        return not is_ours and is_alive(pid_fd)
    finally:
        os.close(pid_fd)


def peer_of(channel: socket.socket, pid: int) -> int:
    """Return a descriptor of whoever connected, from the kernel where it can tell.

    Raises:
        OSError: It is gone.
    """
    with suppress(OSError):
        return channel.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    return os.pidfd_open(pid)


def is_alive(pid_fd: int) -> bool:
    """Tell whether a process has not ended."""
    poll = select.poll()
    poll.register(pid_fd, select.POLLIN)
    return not poll.poll(0)


def is_below(pid: int, ancestor: int) -> bool:
    """Tell whether a process descends from another; what cannot be told counts as yes."""
    before = None
    for _ in range(LOOKS_MAX):
        line = ancestry(pid)
        # Parents die and pids come again; two equal looks were at what there was.
        if line is not None and line == before:
            return any(each.pid == ancestor for each in line)
        before = line
    return True


def ancestry(pid: int) -> list[Seen] | None:
    """Return a process and its parents up to the first, or None if one went meanwhile."""
    line: list[Seen] = []
    while pid > 0:
        seen = look(pid)
        if seen is None and is_hidden(pid):
            # What we started we can see, so whoever started this is none of it.
            return line
        if seen is None:
            return None
        line.append(seen)
        pid = seen.parent
    return line


def is_hidden(pid: int) -> bool:
    """Tell whether there is a process of another user, which /proc may not show."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False
