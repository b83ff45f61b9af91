"""Entries of a fork that no merge can take over: each is told, and the rest is merged."""

import os
from pathlib import Path

from support.toolrunner.merged_trees import Pair, write
from toolrunner.workspaces.merge.service import MergeReport
from toolrunner.workspaces.rpc.convert import report_to_proto

#: 16 of these, with the separators, have as many bytes as a path may have.
LONG = "n" * 255


def make_deep(top: Path, levels: int) -> str:
    """Make nested directories with long names; return the path of the innermost one."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(LONG, dir_fd=fd)
        inner = os.open(LONG, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    file = os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.close(file)
    os.close(fd)
    return "/".join([LONG] * levels)


def test_a_directory_whose_path_is_too_long_is_left_out_and_told(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {"a": "a"})
    write(pair.fork, {"a": "changed"})
    innermost = make_deep(pair.fork, 18)
    seventeen = innermost.rpartition("/")[0]
    found = pair.merge()
    assert found.left_out == (seventeen,)
    assert [change.path for change in found.changes][:2] == ["a", LONG]
    assert (pair.parent / "a").read_text() == "changed"


def test_a_file_whose_path_is_too_long_is_left_out_and_told(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {"a": "a"})
    directory = make_deep(pair.fork, 16)
    found = pair.merge()
    assert found.left_out == (f"{directory}/file",)
    assert found.changes[-1].path == directory


def test_a_pipe_is_left_out_and_told(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {"a": "a", "d/x": "x"})
    write(pair.fork, {"a": "changed"})
    os.mkfifo(pair.fork / "d/pipe")
    found = pair.merge()
    assert found.left_out == ("d/pipe",)
    assert [change.path for change in found.changes] == ["a"]
    assert pair.merge(paths=("a",)).left_out == ()


def test_what_a_pipe_replaced_stays_in_the_parent(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {"a": "a", "d/x": "x"})
    (pair.fork / "a").unlink()
    (pair.fork / "d/x").unlink()
    (pair.fork / "d").rmdir()
    for name in ("a", "d"):
        os.mkfifo(pair.fork / name)
    found = pair.merge()
    assert (found.left_out, found.changes) == (("a", "d"), ())
    assert (pair.parent / "d/x").read_text() == "x"


def test_a_pipe_is_told_before_caches(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {"a": "a"})
    write(pair.fork, {"__pycache__/m.pyc": "m"})
    os.mkfifo(pair.fork / "pipe")
    assert pair.merge().left_out == ("pipe", "__pycache__")


def test_a_report_has_a_limited_size_of_paths_that_are_left_out() -> None:
    paths = tuple(f"{number:04}" * 1024 for number in range(20))
    report = report_to_proto(MergeReport(True, (), (), left_out=paths))
    assert tuple(report.left_out_paths) == paths[:16]
