"""Deaths that come sooner than what is told of the dead; the processes are real."""

import errno
import json
import os
import selectors
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from toolrunner.sandbox import is_readable
from toolrunner.spawner.child import ChildProcess
from toolrunner.spawner.children import REPORT_OVER, ChildProcesses
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.frames import FrameChannel, Frames
from toolrunner.spawner.process_index import ProcessIndex

CODE = 7
WITHIN_S = 10.0


@dataclass
class Stage:
    """A family with one process that went into a cell, of whom nothing was told yet."""

    family: ChildProcesses
    service: socket.socket
    child: ChildProcess
    report: int
    outside: int
    inside: int
    outside_fd: int
    frames: Frames = field(default_factory=Frames)

    def tell(self, **told: object) -> None:
        os.write(self.report, json.dumps(told).encode() + b"\n")

    def close_report(self) -> None:
        os.close(self.report)
        self.family.settle(self.child)

    def heard(self) -> list[dict[str, Any]]:
        """Return what the service was told since the last time."""
        self.service.setblocking(False)
        messages: list[dict[str, Any]] = []
        with suppress(BlockingIOError):
            while True:
                data, fds, _, _ = socket.recv_fds(self.service, 65536, 8)
                messages += self.frames.feed(data)
                for fd in fds:
                    os.close(fd)
        return messages


def died(code: int) -> int:
    """Fork a child that is dead, and that nobody has reaped."""
    pid = os.fork()
    if pid == 0:
        os._exit(code)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return pid


@pytest.fixture
def stage() -> Iterator[Stage]:
    # One who stays outside and lives as long as this pipe has a writer.
    lasting, until = os.pipe()
    outside = os.fork()
    if outside == 0:
        os.close(until)
        os.read(lasting, 1)
        os._exit(0)
    ours, theirs = socket.socketpair()
    groups, selector = ControlGroups(""), selectors.DefaultSelector()
    family = ChildProcesses(
        FrameChannel(ours), selector, groups, (1024, 1024), ProcessIndex(groups)
    )
    reading, writing = os.pipe2(os.O_NONBLOCK)
    output = os.open(os.devnull, os.O_RDONLY)
    child = ChildProcess("p", "w", 1, outside, output, -1, reading)
    family.children["p"] = family.starting["p"] = child
    family.leaders[outside] = "p"
    family.process_index.enter("p", "w", outside)
    selector.register(reading, REPORT_OVER, child)
    outside_fd = os.pidfd_open(outside)
    yield Stage(family, theirs, child, writing, outside, died(CODE), outside_fd)
    os.close(outside_fd)
    for fd in (lasting, until):
        os.close(fd)
    with suppress(OSError):
        os.close(output)
    with suppress(ChildProcessError):
        os.waitpid(outside, 0)
    selector.close()
    ours.close()
    theirs.close()


ANSWER = {"number": 1, "layers": [], "descriptors": 1}
EXITED = {"exited": "p", "status": CODE << 8, "is_oom_killed": False}


def test_one_who_died_before_it_was_told_who_it_is_is_told_of(stage: Stage) -> None:
    stage.family.reap()
    assert stage.heard() == []
    stage.tell(pid=stage.inside)
    stage.close_report()
    assert stage.heard() == [{**ANSWER, "pid": stage.inside}, EXITED]
    assert (stage.family.leaders, stage.family.early) == ({}, {})


def test_an_exit_is_never_told_before_the_start(stage: Stage) -> None:
    stage.tell(pid=stage.inside)
    stage.family.settle(stage.child)
    stage.family.reap()
    assert stage.heard() == []
    stage.close_report()
    assert stage.heard() == [{**ANSWER, "pid": stage.inside}, EXITED]
    assert (stage.family.leaders, stage.family.early) == ({}, {})


def test_deaths_of_strangers_are_not_kept_for_long(stage: Stage) -> None:
    stage.family.reap()
    stage.tell(stage="exec", errno=2)
    stage.close_report()
    assert stage.heard() == [{"number": 1, "stage": "exec", "errno": 2}]
    assert stage.family.early == {}


def test_who_shares_a_user_or_has_none_is_looked_for_everywhere() -> None:
    process_index = ProcessIndex(ControlGroups(""))
    process_index.hold("alone", 20_001)
    process_index.hold("alone", 20_001)
    process_index.hold("in_namespaces", 20_002, has_cell=True)
    process_index.hold("one", 31_337)
    process_index.hold("another", 31_337)
    process_index.hold("third", 31_337)
    process_index.hold("plain")
    process_index.hold("mixed", 20_003)
    process_index.hold("mixed")
    names = ("alone", "in_namespaces", "one", "another", "third", "plain", "mixed", "unknown")
    found = {name: process_index.confined(name) is not None for name in names}
    assert [name for name, is_confined in found.items() if is_confined] == [
        "alone",
        "in_namespaces",
    ]


def test_nothing_is_remembered_of_workspaces_that_nobody_is_in() -> None:
    process_index = ProcessIndex(ControlGroups(""))
    for number in range(10):
        process_index.enter(f"p{number}", f"w{number}", 0)
        process_index.hold(f"w{number}", 20_000 + number)
        process_index.hold(f"w{number}", has_cell=number % 2 == 0)
    process_index.keep_only({"p1", "p2"})
    assert (process_index.in_namespaces, process_index.loose) == ({"w2"}, {"w1"})
    assert process_index.users == {20_001: "w1", 20_002: "w2"}


def test_a_report_wakes_the_spawner_once_and_all_of_it_is_read_then(stage: Stage) -> None:
    stage.tell(pid=stage.inside)
    stage.tell(layers=[1, 2])
    assert stage.family.selector.select(0) == []
    os.close(stage.report)
    ((key, _),) = stage.family.selector.select(5)
    assert key.data is stage.child
    stage.family.settle(stage.child)
    (told,) = stage.heard()
    assert (told["number"], told["pid"], told["layers"]) == (1, stage.inside, [1, 2])


def test_one_who_does_not_begin_in_time_is_killed_and_its_start_answered(stage: Stage) -> None:
    stage.child.give_up_at = 100.0
    assert (stage.family.end_late(99.0), stage.heard()) == (100.0, [])
    assert stage.family.end_late(100.0) is None
    assert stage.heard() == [{"number": 1, "stage": "start", "errno": errno.ETIMEDOUT}]
    assert is_readable(stage.outside_fd, WITHIN_S), "it was not killed"


def test_one_who_is_forgotten_before_it_began_is_killed(stage: Stage) -> None:
    stage.family.forget("p")
    assert (stage.family.starting, stage.family.children) == ({}, {})
    assert is_readable(stage.outside_fd, WITHIN_S), "it was not killed"
    # Its descriptors were closed once, and are of no use to anybody.
    stage.family.reap()
    assert [told.get("descriptors") for told in stage.heard()] == [None]
