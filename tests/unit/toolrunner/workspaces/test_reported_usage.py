"""The disk usage that a node reports of its workspaces, by which users are limited."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.host.forked_user import USER, as_ordinary_user
from support.host.ordinary_user import needs_root
from toolrunner.directories.workspaces import Workspace, WorkspaceOptions
from toolrunner.primitives.domain import Quota
from toolrunner.workspaces.node.reporter import used_by

MIB = 1024**2


@pytest.fixture
def workspace() -> Iterator[Workspace]:
    """A workspace that an ordinary user owns and can walk to."""
    path = Path(tempfile.mkdtemp(prefix="parley-used-"))
    workspace = Workspace(path)
    workspace.root.mkdir()
    if os.geteuid() == 0:
        os.chown(path, USER, USER)
        os.chown(workspace.root, USER, USER)
    yield workspace
    shutil.rmtree(path)


def registered(workspace: Workspace) -> Workspace:
    """Return a workspace whose files are those of another one, as a directory of the host."""
    return Workspace(workspace.directory, WorkspaceOptions(files=workspace.root))


def test_an_ordinary_users_node_reports_directories_that_are_closed_to_it(
    workspace: Workspace,
) -> None:
    tree = workspace.root

    def work() -> tuple[int, int]:
        (tree / "closed").mkdir()
        (tree / "closed" / "big").write_bytes(os.urandom(MIB))
        (tree / "closed").chmod(0o000)
        try:
            return used_by(workspace, Quota())
        finally:
            (tree / "closed").chmod(0o700)

    disk_bytes, entries = as_ordinary_user(work)
    assert disk_bytes >= MIB
    assert entries == 3


@needs_root
def test_what_cannot_be_read_is_reported_as_all_that_the_workspace_may_have(
    workspace: Workspace,
) -> None:
    (workspace.root / "foreign").mkdir(mode=0o700)
    quota = Quota(disk_bytes=10 * MIB, inodes=1000)
    assert as_ordinary_user(lambda: used_by(workspace, quota)) == (10 * MIB, 1000)


def test_closed_directories_of_a_registered_directory_are_neither_changed_nor_counted(
    workspace: Workspace,
) -> None:
    closed = workspace.root / "closed"

    def work() -> tuple[tuple[int, int], bool]:
        closed.mkdir()
        (closed / "big").write_bytes(os.urandom(MIB))
        closed.chmod(0o000)
        before = closed.stat().st_ctime_ns
        try:
            used = used_by(registered(workspace), Quota(disk_bytes=10 * MIB, inodes=1000))
            return used, closed.stat().st_ctime_ns == before
        finally:
            closed.chmod(0o700)

    (disk_bytes, entries), is_unchanged = as_ordinary_user(work)
    assert disk_bytes < MIB
    assert entries == 1
    assert is_unchanged


@needs_root
def test_foreign_directories_of_a_registered_directory_do_not_count_as_full(
    workspace: Workspace,
) -> None:
    (workspace.root / "foreign").mkdir(mode=0o700)
    quota = Quota(disk_bytes=10 * MIB, inodes=1000)
    disk_bytes, entries = as_ordinary_user(lambda: used_by(registered(workspace), quota))
    assert disk_bytes < 10 * MIB
    assert entries == 1


def test_a_workspace_that_was_removed_is_not_reported(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        used_by(Workspace(tmp_path / "gone"), Quota())
