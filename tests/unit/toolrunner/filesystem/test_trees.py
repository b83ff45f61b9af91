"""Trees that hostile programs made: removed, copied and measured without leaving them."""

import os
import socket
import threading
from pathlib import Path

import pytest

from support.host.limits import without_descriptors
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.copy import copy_tree
from toolrunner.filesystem.trash import Trash
from toolrunner.filesystem.tree import measure, walk


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    directory = tmp_path / "tree"
    directory.mkdir()
    return directory


def deep(directory: Path, depth: int) -> None:
    """Make directories in each other, deeper than any path is long."""
    fd = os.open(directory, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deeper", dir_fd=fd)
        below = os.open("deeper", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("last", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
    os.close(fd)


def test_no_tree_is_too_deep_to_be_removed(tree: Path, tmp_path: Path) -> None:
    deep(tree, 700)
    trash = Trash(tmp_path / "trash")
    assert trash.throw(tree)
    trash.empty()
    assert (tree.exists(), os.listdir(tmp_path / "trash")) == (False, [])


def test_removal_leaves_what_links_lead_to_alone(tree: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "d").mkdir(parents=True)
    (outside / "f").write_text("kept")
    (tree / "to-directory").symlink_to(outside)
    (tree / "to-file").symlink_to(outside / "f")
    (tree / "to-itself").symlink_to("to-itself")
    os.link(outside / "f", tree / "hard")
    trash = Trash(tmp_path / "trash")
    trash.throw(tree)
    trash.empty()
    assert sorted(os.listdir(outside)) == ["d", "f"]
    assert (outside / "f").read_text() == "kept"


def test_what_was_thrown_before_a_crash_is_removed_later(tree: Path, tmp_path: Path) -> None:
    (tree / "f").write_bytes(b"x" * 10_000)
    Trash(tmp_path / "trash").throw(tree)
    tree.mkdir()
    (tree / "g").touch()
    later = Trash(tmp_path / "trash")
    later.throw(tree)
    assert later.empty() >= 10_000
    assert (later.throw(tree), later.empty()) == (False, 0)


def test_a_copy_is_equal_and_independent(tree: Path, tmp_path: Path) -> None:
    (tree / "d").mkdir(mode=0o750)
    (tree / "d" / "f").write_bytes(b"content")
    (tree / "d" / "f").chmod(0o4751)
    os.link(tree / "d" / "f", tree / "hard")
    (tree / "link").symlink_to("/etc/passwd")
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tree / "socket"))
    os.utime(tree / "d" / "f", ns=(1, 2))
    with (tree / "sparse").open("wb") as sparse:
        sparse.truncate(1 << 40)
        sparse.seek(1 << 39)
        sparse.write(b"here")
    target = tmp_path / "copy"
    target.mkdir()
    source, copy = Root.open_directory(str(tree)), Root.open_directory(str(target))
    copied = copy_tree(source, copy)
    source.close()
    copy.close()
    assert (copied.files, copied.left_out) == (3, 2)
    assert sorted(os.listdir(target)) == ["d", "hard", "link", "sparse"]
    copy_of = (target / "d" / "f").stat()
    assert (copy_of.st_mode & 0o7777, copy_of.st_mtime_ns, copy_of.st_nlink) == (0o751, 2, 1)
    assert os.readlink(target / "link") == "/etc/passwd"
    assert (target / "sparse").stat().st_size == 1 << 40
    assert (target / "sparse").stat().st_blocks <= (tree / "sparse").stat().st_blocks + 16


def test_two_names_of_a_file_are_measured_once(tree: Path) -> None:
    (tree / "f").write_bytes(b"x" * 100_000)
    os.link(tree / "f", tree / "g")
    (tree / "out").symlink_to("/")
    root = Root.open_directory(str(tree))
    disk_bytes, entries = measure(root, entries_max=100)
    assert measure(root, entries_max=2)[1] == 2
    root.close()
    assert entries == 3
    assert 100_000 <= disk_bytes < 200_000


def test_a_file_that_is_made_while_the_trash_is_emptied_goes_too(tmp_path: Path) -> None:
    trash, tree = Trash(tmp_path / "trash"), tmp_path / "tree"
    tree.mkdir()
    trash.throw(tree)
    (thrown,) = (tmp_path / "trash").iterdir()
    fd = os.open(thrown, os.O_RDONLY | os.O_DIRECTORY)
    written, is_emptied = threading.Event(), threading.Event()

    def write() -> None:
        for number in range(200):
            try:
                os.close(os.open(f"f{number}", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
            except FileNotFoundError:  # The directory is gone.
                break
            written.set()
        is_emptied.wait(5)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        assert written.wait(5)
        trash.empty()
    finally:
        is_emptied.set()
        writer.join()
        os.close(fd)
    trash.empty()
    assert [*(tmp_path / "trash").iterdir()] == []


def test_a_tree_that_cannot_be_listed_is_not_taken_for_an_empty_one(tree: Path) -> None:
    (tree / "d").mkdir()
    (tree / "d" / "f").write_text("f")
    root = Root.open_directory(str(tree))
    with without_descriptors(), pytest.raises(OSError, match="Too many open files"):
        list(walk(root))
    assert [each.path for each in walk(root)] == ["d", "d/f"]
    root.close()
