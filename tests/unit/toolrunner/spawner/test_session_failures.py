"""The spawner goes on when something that is due at a time fails: all processes end with it."""

import errno
import io
import os
import selectors
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from toolrunner.sandbox import NamespaceSets
from toolrunner.spawner.adoption import AdoptionSocket
from toolrunner.spawner.children import ChildProcesses
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.frames import FrameChannel, frame
from toolrunner.spawner.process_index import ProcessIndex
from toolrunner.spawner.session import SpawnerSession

WITHIN_S = 10.0


class FullDisk(io.StringIO):
    """A log that takes no line."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@dataclass
class FailingChildProcesses(ChildProcesses):
    """Cannot end late starts, once; then the service asks the spawner to quit."""

    peer: socket.socket = field(kw_only=True)
    calls: int = 0

    def end_late(self, now_s: float) -> float | None:
        self.calls += 1
        if self.calls == 1:
            raise OSError(errno.EMFILE, "Too many open files")
        self.peer.sendall(frame({"op": "quit"}))
        return None


class FailingNamespaceSets(NamespaceSets):
    """Cannot end what is idle."""

    def end_rested(self, now_s: float) -> float | None:
        raise ProcessLookupError(errno.ESRCH, "No such process")


class FailingAdoptionSocket(AdoptionSocket):
    """Cannot close late candidates."""

    def send_late_away(self) -> None:
        raise KeyError("not registered")


@contextmanager
def failing_session() -> Iterator[tuple[SpawnerSession, int]]:
    """Yield a session in which everything that is due fails, and its wakeup descriptor."""
    own, peer = socket.socketpair()
    wakeup_fd, wakeup_end = os.pipe()
    with own, peer, socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as waits:
        groups, service = ControlGroups(""), FrameChannel(own)
        index = ProcessIndex(groups, namespace_sets=FailingNamespaceSets())
        children = FailingChildProcesses(service, waits, groups, (64, 64), index, peer=peer)
        adoption_socket = FailingAdoptionSocket(listener, "secret", waits)
        listener.bind(b"")
        listener.listen()
        try:
            yield SpawnerSession(service, children, waits, adoption_socket, 0.0), wakeup_fd
        finally:
            os.close(wakeup_fd)
            os.close(wakeup_end)


def test_what_is_due_and_fails_is_tried_again_and_ends_nothing(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with failing_session() as (session, wakeup_fd):
        session.run(wakeup_fd)
        assert session.is_over
    said = capfd.readouterr().err
    assert all(name in said for name in ("Too many open files", "No such process", "registered"))


def test_a_failure_that_cannot_be_logged_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", FullDisk())
    with failing_session() as (session, wakeup_fd):
        session.run(wakeup_fd)
        assert session.is_over
