import ast
import os
import signal
import subprocess
import sys
from pathlib import Path

from toolrunner import spawner
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
    modules = [ast.parse(path.read_text()) for path in Path(spawner.__file__).parent.glob("*.py")]
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
    assert [name for name in others if not name.startswith("toolrunner.spawner.")] == []


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
