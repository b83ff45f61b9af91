"""Trees that are made to hide what they take of the disk."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.forked_user import USER, as_ordinary_user
from toolrunner.filesystem.disk_usage import Walked, walked
from toolrunner.primitives.domain import Quota
from toolrunner.quotas.disk import Space, Use, overrun

MIB = 1024**2


@pytest.fixture
def tree() -> Iterator[Path]:
    """A directory that an ordinary user owns and can walk to."""
    path = Path(tempfile.mkdtemp(prefix="parley-walk-"))
    if os.geteuid() == 0:
        os.chown(path, USER, USER)
    yield path
    # Deeper than Python removes.
    subprocess.run(["rm", "-rf", "--", str(path)], check=True)


def fill(path: Path, size_bytes: int = MIB) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(os.urandom(size_bytes))


def look(*paths: Path, entries_max: int = 10_000) -> Walked:
    return walked(map(str, paths), entries_max=entries_max)


@pytest.mark.parametrize("closed", [("a",), ("a", "a/b"), ("a/b",), (".",), (".", "a", "a/b")])
@pytest.mark.parametrize("mode", [0o000, 0o400, 0o300, 0o100])
def test_a_directory_that_its_owner_closed_counts_and_stays_closed(
    tree: Path, closed: tuple[str, ...], mode: int
) -> None:
    def work() -> tuple[Walked, list[int]]:
        fill(tree / "a" / "b" / "c" / "big")
        paths = [tree / name for name in closed]
        for path in reversed(paths):
            path.chmod(mode)
        found = look(tree)
        modes = []
        for path in paths:
            modes.append(path.stat().st_mode & 0o777)
            path.chmod(0o700)
        return found, modes

    found, modes = as_ordinary_user(work)
    assert (found.inodes, found.unread) == (5, 0)
    assert found.disk_bytes >= MIB
    assert modes == [mode] * len(closed)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs a directory of somebody else")
def test_what_cannot_be_opened_is_told_and_counts_as_too_much(tree: Path) -> None:
    (tree / "closed").mkdir(mode=0o700)
    found = as_ordinary_user(lambda: look(tree))
    assert found.unread == 1
    use = Use(found.disk_bytes, found.inodes, Space(0, 0), 0.0, 0.0, is_partial=True)
    for quota, dimension in ((Quota(disk_bytes=MIB), "disk_bytes"), (Quota(inodes=9), "inodes")):
        problem = overrun(use, quota)
        assert problem is not None
        assert (problem.dimension, problem.is_partial) == (dimension, True)
        assert "chmod" in str(problem)


def test_a_tree_deeper_than_any_path_counts(tree: Path) -> None:
    depth = 1500
    fd = os.open(tree, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deep", dir_fd=fd)
        below = os.open("deep", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    big = os.open("big", os.O_WRONLY | os.O_CREAT, dir_fd=fd)
    os.write(big, os.urandom(MIB))
    os.close(big)
    os.close(fd)
    before = len(os.listdir("/proc/self/fd"))
    found = look(tree)
    assert (found.inodes, found.unread) == (depth + 2, 0)
    assert found.disk_bytes >= MIB
    assert len(os.listdir("/proc/self/fd")) == before


def test_names_of_one_file_count_once_and_holes_not_at_all(tree: Path) -> None:
    fill(tree / "one" / "file")
    (tree / "two").mkdir()
    os.link(tree / "one" / "file", tree / "two" / "again")
    (tree / "link").symlink_to("/usr")
    (tree / os.fsdecode(b"\xff\n\x01")).write_bytes(b"odd")
    with (tree / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    found = look(tree / "one", tree / "two", tree / "gone")
    assert (found.inodes, found.unread) == (3, 0)
    assert MIB <= found.disk_bytes < 2 * MIB
    everything = look(tree)
    assert everything.inodes == 7
    assert everything.disk_bytes < 2 * MIB


def test_counting_stops_where_there_are_too_many(tree: Path) -> None:
    for number in range(50):
        (tree / str(number)).mkdir()
    assert 10 <= look(tree, entries_max=10).inodes <= 52
