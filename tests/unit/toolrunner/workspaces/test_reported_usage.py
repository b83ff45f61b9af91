"""The disk usage that a node reports of its workspaces, by which users are limited."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.forked_user import USER, as_ordinary_user
from support.host.ordinary_user import needs_root
from toolrunner.primitives.domain import Quota
from toolrunner.workspaces.node.reporter import used_by

MIB = 1024**2


@pytest.fixture
def tree() -> Iterator[Path]:
    """A directory that an ordinary user owns and can walk to."""
    path = Path(tempfile.mkdtemp(prefix="parley-used-"))
    if os.geteuid() == 0:
        os.chown(path, USER, USER)
    yield path
    shutil.rmtree(path)


def test_an_ordinary_users_node_reports_directories_that_are_closed_to_it(tree: Path) -> None:
    def work() -> tuple[int, int]:
        (tree / "closed").mkdir()
        (tree / "closed" / "big").write_bytes(os.urandom(MIB))
        (tree / "closed").chmod(0o000)
        try:
            return used_by(tree, Quota())
        finally:
            (tree / "closed").chmod(0o700)

    disk_bytes, entries = as_ordinary_user(work)
    assert disk_bytes >= MIB
    assert entries == 3


@needs_root
def test_what_cannot_be_read_is_reported_as_all_that_the_workspace_may_have(tree: Path) -> None:
    (tree / "foreign").mkdir(mode=0o700)
    quota = Quota(disk_bytes=10 * MIB, inodes=1000)
    assert as_ordinary_user(lambda: used_by(tree, quota)) == (10 * MIB, 1000)


def test_a_workspace_that_was_removed_is_not_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        used_by(tmp_path / "gone", Quota())
