import ast
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from toolrunner import sandbox, spawner
from toolrunner.spawner import (
    PROCESS_MARK,
    Frames,
    Seen,
    descendants,
    end_marked,
    frame,
    running_below,
    running_processes,
)
from toolrunner.spawner.adoption import is_below
from toolrunner.spawner.control_groups import ControlGroups
from toolrunner.spawner.kernel import look, send
from toolrunner.spawner.process_index import ProcessEntry, ProcessIndex, ProcessOwnership


def test_messages_survive_any_cut() -> None:
    messages: list[dict[str, object]] = [{"op": "start", "argv": ["é" * 50]}, {}, {"number": 2}]
    stream = b"".join(map(frame, messages))
    for size in (1, 3, 7, len(stream)):
        frames = Frames()
        pieces = (stream[at : at + size] for at in range(0, len(stream), size))
        assert [message for piece in pieces for message in frames.feed(piece)] == messages


def test_descendants_are_found_through_every_generation() -> None:
    child, grandchild, stranger = Seen(2, 1, 2, 2), Seen(3, 2, 3, 3), Seen(9, 8, 9, 9)
    assert descendants(1, [stranger, grandchild, child]) == [child, grandchild]


def test_the_spawner_needs_nothing_but_itself_and_the_standard_library() -> None:
    resources = (Path(spawner.__file__).parent, Path(sandbox.__file__).parent)
    modules = [ast.parse(path.read_text()) for room in resources for path in room.glob("*.py")]
    imported = {
        name if name.startswith("toolrunner") else name.split(".")[0]
        for tree in modules
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    others = imported - sys.stdlib_module_names
    own = ("toolrunner.spawner", "toolrunner.sandbox")
    assert [name for name in others if not name.startswith(own)] == []


def test_what_bears_a_mark_is_ended_and_nothing_else() -> None:
    lost = subprocess.Popen(["sleep", "7601"], env={PROCESS_MARK: "lost-1"})
    other = subprocess.Popen(["sleep", "7602"], env={PROCESS_MARK: "lost-11"})
    try:
        end_marked(frozenset({"lost-1"}))
        assert lost.wait(5) == -signal.SIGKILL
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_those_below_a_process_are_found_without_looking_at_all() -> None:
    with subprocess.Popen(
        ["sh", "-c", "sleep 7611 & sleep 7612 & echo up; wait"],
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as shell:
        assert shell.stdout is not None
        shell.stdout.readline()
        found = running_below(shell.pid)
        assert sorted(found, key=lambda each: each.pid) == sorted(
            descendants(shell.pid, running_processes()), key=lambda each: each.pid
        )
        assert [each.group for each in found] == [shell.pid] * 2
        os.killpg(shell.pid, signal.SIGKILL)


def sleeping(mark: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "7620"], env={PROCESS_MARK: mark}, start_new_session=True)


@pytest.fixture
def process_index() -> ProcessIndex:
    return ProcessIndex(ControlGroups(""))


def test_a_pid_that_was_given_anew_is_not_signalled() -> None:
    with sleeping("p1") as process:
        seen = look(process.pid)
        assert seen is not None
        assert not send(replace(seen, started=seen.started - 1), signal.SIGKILL)
        assert process.poll() is None
        assert send(seen, signal.SIGKILL)
        assert process.wait(5) == -signal.SIGKILL


def test_a_process_is_found_by_its_number_only_while_that_is_its_own(
    process_index: ProcessIndex,
) -> None:
    with sleeping("") as process:
        process_index.enter("p1", "w1", process.pid)
        assert [each.pid for each in process_index.members("p1")] == [process.pid]
        # As if the leader had died: then its pid is that of somebody else now.
        process_index.reaped("p1")
        assert process_index.members("p1") == []
        process.kill()


def test_who_bears_the_mark_of_another_is_not_taken_for_a_departed_leaders(
    process_index: ProcessIndex,
) -> None:
    departed, other = Seen(9, 1, 7, 7, 20), Seen(8, 1, 7, 7, 30)
    marks = {9: "p2", 8: None}
    known = {"p1": ProcessEntry("w1", 7, is_reaped=True), "p2": ProcessEntry("w2", 6)}
    belongs = ProcessOwnership({"p1": known["p1"]}, known, [departed, other], marks.get)
    assert [belongs.by_number(each) for each in (departed, other)] == [False, True]


def test_what_is_forgotten_is_known_only_while_it_left_somebody_behind(
    process_index: ProcessIndex,
) -> None:
    with sleeping("p-behind") as behind:
        process_index.enter("p-behind", "w1", behind.pid)
        for number in range(200):
            process_index.known[f"p{number}"] = ProcessEntry(
                "w1", 4_194_304 + number, is_reaped=True
            )
            process_index.prune({"p-needed"})
        assert len(process_index.known) <= 65
        assert "p-behind" in process_index.known
        behind.kill()


def test_whoever_was_started_here_is_below_and_nobody_else_is() -> None:
    with sleeping("p1") as process:
        assert is_below(process.pid, os.getpid())
        assert not is_below(os.getpid(), process.pid)
        process.kill()
    # Of whoever is gone nothing can be told, and so nothing good.
    assert is_below(process.pid, 1)
