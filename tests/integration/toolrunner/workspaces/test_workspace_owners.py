"""Files of a workspace that belong to a user of their own."""

import os
from pathlib import Path

import pytest

from support.toolrunner.merged_trees import Pair, write
from toolrunner.directories.users import DEFAULT_RANGE, NoUserLeft, UserRange, Users
from toolrunner.directories.workspaces import WorkspaceOptions, Workspaces
from toolrunner.filesystem.beneath import Root
from toolrunner.filesystem.tree import Kind, hand_over, walk
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.workspaces.merge.fork_base import Base, copy_with_base
from toolrunner.workspaces.sources.home_file import copy_home_file

OWNER = 23_456

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


def owners(directory: Path) -> set[int]:
    """Return whose everything in a directory is, itself included."""
    return {path.lstat().st_uid for path in (directory, *directory.rglob("*"))}


def test_a_tree_is_handed_over_and_no_link_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.touch()
    tree = tmp_path / "tree"
    write(tree, {"d/f": "f", "link": f"->{outside}"})
    root = Root.open_directory(str(tree))
    hand_over(root, OWNER)
    root.close()
    assert (owners(tree), outside.stat().st_uid) == ({OWNER}, 0)


def test_a_copy_is_given_away_before_its_base_remembers_it(tmp_path: Path) -> None:
    """Else a merge takes every file for a changed one, and reads all of them."""
    outside = tmp_path / "outside"
    outside.touch()
    source, target = tmp_path / "source", tmp_path / "target"
    write(source, {"d/f": "f", "g": "g" * 5000, "link": f"->{outside}"})
    target.mkdir()
    roots = [Root.open_directory(str(each)) for each in (source, target)]
    copy_with_base(roots[0], roots[1], tmp_path / "base", owner=OWNER)
    base = Base.load(tmp_path / "base")
    found = {each.path: each.identity for each in walk(roots[1]) if each.kind is Kind.FILE}
    for root in roots:
        root.close()
    assert owners(target) == {0, OWNER}
    assert {path.lstat().st_uid for path in target.rglob("*")} == {OWNER}
    assert outside.stat().st_uid == 0
    assert {path: base.entries[path].copy for path in found} == found
    assert (base.text("d/f"), base.text("g")) == (b"f", b"g" * 5000)


def test_a_fork_has_the_instruction_file_of_the_home_of_its_parent(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path)
    parent, fork = (workspaces.prepared(WorkspaceId(name)) for name in ("parent", "fork"))
    copy_home_file(parent, fork, OWNER)
    assert list(fork.home.iterdir()) == []
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (parent.home / "AGENTS.md").symlink_to(secret)
    copy_home_file(parent, fork, OWNER)
    assert list(fork.home.iterdir()) == []
    (parent.home / "AGENTS.md").unlink()
    os.mkfifo(parent.home / "AGENTS.md")
    copy_home_file(parent, fork, OWNER)
    assert list(fork.home.iterdir()) == []
    (parent.home / "AGENTS.md").unlink()
    write(parent.home, {"AGENTS.md": "be kind", ".cache/large": "x"})
    copy_home_file(parent, fork, OWNER)
    (copied,) = fork.home.iterdir()
    assert (copied.read_text(), copied.stat().st_uid) == ("be kind", OWNER)


def test_files_from_before_there_were_users_get_one(tmp_path: Path) -> None:
    before = Workspaces(tmp_path).prepared(WorkspaceId("w"))
    write(before.root, {"d/f": "f"})
    after = Workspaces(tmp_path, Users(tmp_path, DEFAULT_RANGE)).prepared(WorkspaceId("w"))
    assert (
        owners(after.root) == owners(after.home) == owners(after.temporary) == {DEFAULT_RANGE.first}
    )
    assert owners(after.undo) == {0}


def test_a_registered_directory_keeps_its_owner(tmp_path: Path) -> None:
    registered = tmp_path / "registered"
    write(registered, {"d/f": "f"})
    workspaces = Workspaces(tmp_path / "w", Users(tmp_path / "w", DEFAULT_RANGE))
    workspaces.options[WorkspaceId("w")] = WorkspaceOptions(registered)
    workspaces.prepared(WorkspaceId("w"))
    assert owners(registered) == {0}


def test_what_a_merge_brings_belongs_to_whom_the_parent_does(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {"a": "a", "d/f": "f"})
    root = Root.open_directory(str(pair.parent))
    hand_over(root, OWNER)
    root.close()
    write(pair.fork, {"a": "changed", "n/e/w": "new", "link": "->a"})
    pair.merge()
    assert owners(pair.parent) == {OWNER}


def test_a_workspace_keeps_a_user_of_another_range_and_is_told(tmp_path: Path) -> None:
    own = UserRange(30_000, 2)
    workspaces = Workspaces(tmp_path, Users(tmp_path, own))
    for name in ("a", "b"):
        workspaces.prepared(WorkspaceId(name))
    later = Users(tmp_path, UserRange(30_001, 5))
    after = Workspaces(tmp_path, later)
    kept = [after.prepared(WorkspaceId(name)) for name in ("a", "b", "c")]
    assert [each.root.stat().st_uid for each in kept] == [30_000, 30_001, 30_002]
    assert later.outside() == ("a",)
    assert after.by_user() == {30_001: WorkspaceId("b"), 30_002: WorkspaceId("c")}


def test_the_user_of_files_that_are_being_made_is_taken(tmp_path: Path) -> None:
    users = Users(tmp_path, UserRange(30_000, 2))
    (tmp_path / "w" / "new").mkdir(parents=True)
    os.chown(tmp_path / "w" / "new", 30_000, 30_000)
    assert [users.take(), users.take()] == [30_001, 30_001]


def test_no_user_of_a_full_range_is_given_twice(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path, Users(tmp_path, UserRange(30_000, 2)))
    for name in ("a", "b"):
        workspaces.prepared(WorkspaceId(name))
    with pytest.raises(NoUserLeft):
        workspaces.prepared(WorkspaceId("c"))
