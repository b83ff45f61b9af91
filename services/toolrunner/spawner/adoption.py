"""Adoption of a running spawner by the next service process.

Theory: a peer may adopt the spawner after three checks. The kernel reports that the peer has our
user id, is alive and is not a descendant of this program; a process that connected and exited,
leaving the connection to another process, therefore fails. The peer sends the secret, which is in a
file that only our user may read and that confined processes cannot reach. And it does so within a
time limit. Until then the connection is only a candidate and does not block other candidates.
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
#: Identifies the peer even when its pid has been reused; Linux 6.5 and newer.
SO_PEERPIDFD = 77
CANDIDATES_MAX = 16
CANDIDATE_S = 5.0
FIRST_WORD_BYTES = 4096
LOOKS_MAX = 5


@dataclass
class Candidate:
    """A connection whose peer has not sent the secret yet."""

    channel: socket.socket
    give_up_at: float
    frames: Frames = field(default_factory=Frames)
    heard_bytes: int = 0


@dataclass
class AdoptionSocket:
    """The UNIX socket on which the next service connects."""

    listener: socket.socket
    secret: str
    selector: selectors.BaseSelector
    candidates: list[Candidate] = field(default_factory=list)

    @property
    def closes_at(self) -> float | None:
        """The earliest time at which a candidate expires."""
        return min((each.give_up_at for each in self.candidates), default=None)

    def refuse(self) -> None:
        """Accept and close one connection."""
        with suppress(OSError):
            self.listener.accept()[0].close()

    def admit(self) -> None:
        """Accept a connection as a candidate, unless the checks of the peer fail."""
        with suppress(OSError):
            channel, _ = self.listener.accept()
            if len(self.candidates) >= CANDIDATES_MAX or not is_stranger(channel):
                channel.close()
                return
            candidate = Candidate(channel, time.monotonic() + CANDIDATE_S)
            self.candidates.append(candidate)
            self.selector.register(channel, selectors.EVENT_READ, candidate)

    def hear(self, candidate: Candidate) -> dict[str, Any] | None:
        """Return the first message of a peer that sent the secret; close any other peer."""
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

    def is_right(self, message: Any) -> bool:
        """Return whether a first message contains the secret."""
        # Imported here because it takes memory and is needed at most once per process.
        from hmac import compare_digest

        match message:
            case {"op": "adopt", "number": int(), "secret": str(shown)}:
                return compare_digest(shown.encode(), self.secret.encode())
            case _:
                return False

    def send_late_away(self) -> None:
        """Close the candidates whose time limit has passed."""
        now = time.monotonic()
        for candidate in [each for each in self.candidates if each.give_up_at <= now]:
            self.send_away(candidate)

    def send_away(self, candidate: Candidate) -> None:
        """Unregister and close a candidate."""
        self.leave(candidate)
        candidate.channel.close()

    def leave(self, candidate: Candidate) -> None:
        """Unregister a candidate without closing it."""
        self.selector.unregister(candidate.channel)
        self.candidates.remove(candidate)

    def close(self) -> None:
        """Close the listener and all candidates."""
        for candidate in list(self.candidates):
            self.send_away(candidate)
        self.listener.close()


def is_stranger(channel: socket.socket) -> bool:
    """Return whether the peer has our user id, is alive and is not a descendant of this program."""
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
        # Checked last: while the peer is alive its pid is not reused, so the checks above hold.
        return not is_ours and is_alive(pid_fd)
    finally:
        os.close(pid_fd)


def peer_of(channel: socket.socket, pid: int) -> int:
    """Return a pidfd of the peer, from SO_PEERPIDFD where the kernel supports it.

    Raises:
        OSError: The peer has exited.
    """
    with suppress(OSError):
        return channel.getsockopt(socket.SOL_SOCKET, SO_PEERPIDFD)
    return os.pidfd_open(pid)


def is_alive(pid_fd: int) -> bool:
    """Return whether a process has not exited."""
    poll = select.poll()
    poll.register(pid_fd, select.POLLIN)
    return not poll.poll(0)


def is_below(pid: int, ancestor: int) -> bool:
    """Return whether a process descends from another; True if that cannot be determined."""
    before = None
    for _ in range(LOOKS_MAX):
        service = ancestry(pid)
        # Parents exit and pids are reused; two equal consecutive reads are consistent.
        if service is not None and service == before:
            return any(each.pid == ancestor for each in service)
        before = service
    return True


def ancestry(pid: int) -> list[Seen] | None:
    """Return a process and its ancestors up to the first, or None if one exited meanwhile."""
    service: list[Seen] = []
    while pid > 0:
        seen = look(pid)
        if seen is None and is_hidden(pid):
            # We can read all of our descendants, so an unreadable process is not one of them.
            return service
        if seen is None:
            return None
        service.append(seen)
        pid = seen.parent
    return service


def is_hidden(pid: int) -> bool:
    """Return whether a process of another user exists, which /proc may hide."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return False
