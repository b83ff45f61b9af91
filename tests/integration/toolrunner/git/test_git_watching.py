"""Following repositories: how few runs of git it takes."""

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from support.toolrunner.git_repositories import GIT, Bench
from toolrunner.fileworker.git import inotify
from toolrunner.fileworker.git import watch as watching
from toolrunner.fileworker.git.protocol import (
    GitAnswer,
    Removed,
    Repositories,
    Repository,
    Unchanged,
    WatchGit,
)
from toolrunner.fileworker.jobs import pieces

A = TypeVar("A")


class Counted:
    """A workspace whose git writes down that it ran."""

    def __init__(self, directory: Path) -> None:
        self._log = directory / "runs"
        program = directory / "counted-git"
        program.write_text(f'#!/bin/sh\necho "$*" >> {self._log}\nexec {GIT} "$@"\n')
        program.chmod(0o755)
        self.bench = Bench.at(directory, str(program))

    def runs(self) -> int:
        """Return how often git ran since this was last asked."""
        count = len(self._log.read_text().splitlines()) if self._log.exists() else 0
        self._log.unlink(missing_ok=True)
        return count

    def watch(self, *, unchanged_s: float = 60, rescan_s: float = 60) -> Iterator[GitAnswer]:
        request = WatchGit(0.3, 0.1, unchanged_s, rescan_s, 30)
        job = self.bench.work.work(request)
        try:
            yield from pieces(job)  # type: ignore[misc]
        finally:
            job.close()


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    counted = Counted(tmp_path)
    counted.bench.init()
    counted.bench.put(".gitignore", "ignored/\n*.log\n")
    counted.bench.put("src/a", "1\n")
    counted.bench.commit()
    return counted


def test_a_burst_of_changes_is_one_look(counted: Counted) -> None:
    events = counted.watch()
    (first,) = _of(next(events), Repositories).repositories
    assert first.files == ()
    assert counted.runs() == 2  # Its configuration and its status.

    for number in range(300):
        counted.bench.put(f"src/{number}", "1\n")
        counted.bench.put("src/a", f"{number}\n")
    changed = _of(next(events), Repository)

    assert (len(changed.files), changed.added_lines, changed.deleted_lines) == (301, 301, 1)
    assert counted.runs() == 2  # Its status and its lines.


def test_a_file_that_is_written_anew_is_told_though_as_many_lines_differ(counted: Counted) -> None:
    events = counted.watch()
    next(events)
    counted.bench.put("src/a", "2\n")
    first = _of(next(events), Repository)
    counted.bench.put("src/a", "3\n")

    assert next(events) == first


def test_quiet_and_ignored_files_cost_no_run_at_all(counted: Counted) -> None:
    counted.bench.put("ignored/deep/x", "1\n")
    events = counted.watch(unchanged_s=0.2)
    next(events)
    counted.runs()
    for number in range(50):
        counted.bench.put("ignored/deep/x", f"{number}\n")
        counted.bench.put("src/x.log", f"{number}\n")

    assert [next(events) for _ in range(3)] == [Unchanged()] * 3
    assert counted.runs() == 0


def test_looking_changes_nothing_that_would_be_looked_at_again(counted: Counted) -> None:
    events = counted.watch(unchanged_s=1.0)
    next(events)
    counted.bench.put("src/a", "2\n")
    assert isinstance(next(events), Repository)
    counted.runs()
    counted.bench.keep("one")
    kept = counted.runs()

    assert next(events) == Unchanged()
    assert counted.runs() == 0
    assert kept > 0


def test_new_directories_and_repositories_are_followed_too(counted: Counted) -> None:
    events = counted.watch()
    next(events)
    counted.bench.put("new/deep/er/x", "1\n")
    assert [file.path for file in _of(next(events), Repository).files] == ["new/deep/er/x"]
    counted.bench.put("new/deep/er/y", "1\n")
    assert len(_of(next(events), Repository).files) == 2

    counted.bench.init("inner")
    counted.bench.put("inner/z", "1\n")
    found = _of(next(events), Repository)
    assert (found.directory, [file.path for file in found.files]) == ("inner", ["z"])
    counted.bench.commit(at="inner")
    cleared = _of(next(events), Repository)
    assert (cleared.directory, cleared.files) == ("inner", ())

    os.rename(counted.bench.root / "inner/.git", counted.bench.root / "inner/.off")
    assert next(events) == Removed("inner")
    outer = _of(next(events), Repository)
    assert (outer.directory, "inner/z" in [file.path for file in outer.files]) == ("", True)


def test_a_checkout_a_commit_and_a_rebase_are_seen(counted: Counted) -> None:
    events = counted.watch()
    next(events)
    counted.bench.git("checkout", "--quiet", "-b", "other")
    assert _of(next(events), Repository).branch == "other"
    counted.bench.git("commit", "--quiet", "--allow-empty", "--message=x")
    assert _of(next(events), Repository).commit == counted.bench.git("rev-parse", "HEAD").strip()


def test_what_cannot_be_watched_is_looked_at_now_and_then(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "DIRECTORIES_MAX", 1)
    events = counted.watch(rescan_s=0.3)
    next(events)

    counted.bench.put("src/a", "2\n")

    assert [file.path for file in _of(next(events), Repository).files] == ["src/a"]


class NoQueues:
    """A kernel whose user has all the queues already that they may have."""

    inotify_add_watch = staticmethod(ctypes.CDLL(None, use_errno=True).inotify_add_watch)

    def inotify_init1(self, flags: int) -> int:
        return -1


def test_without_a_queue_of_the_kernel_it_is_looked_at_now_and_then(
    counted: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inotify, "_libc", NoQueues())
    events = counted.watch(rescan_s=0.3)
    next(events)

    counted.bench.put("src/a", "2\n")

    assert [file.path for file in _of(next(events), Repository).files] == ["src/a"]


def _of(answer: GitAnswer, kind: type[A]) -> A:
    assert isinstance(answer, kind), answer
    return answer
