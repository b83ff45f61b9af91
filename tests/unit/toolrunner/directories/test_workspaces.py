from pathlib import Path

import pytest

from toolrunner.directories.workspaces import Workspace, Workspaces
from toolrunner.primitives.domain import WorkspaceId
from toolrunner.primitives.errors import OutsideWorkspace, PathNotFound, WrongPathKind


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    workspace = Workspaces(tmp_path).prepared(WorkspaceId("w"))
    (workspace.root / "a/b").mkdir(parents=True)
    (workspace.root / "file").touch()
    (workspace.root / "out").symlink_to(tmp_path)
    (workspace.root / "up").symlink_to("../home")
    (workspace.root / "in").symlink_to("a/b")
    return workspace


def test_a_workspace_is_closed_to_others(workspace: Workspace) -> None:
    directories = (workspace.directory, workspace.root, workspace.home, workspace.temporary)
    assert {path.stat().st_mode & 0o777 for path in directories} == {0o700}


def test_directories_inside_are_found(workspace: Workspace) -> None:
    given = ("", ".", "a/b", "a/../a", "in", str(workspace.root), str(workspace.root / "a"))
    found = [workspace.relative(path) for path in given]
    assert found == [".", ".", "a/b", "a/../a", "in", ".", "a"]


@pytest.mark.parametrize("path", ["..", "a/../../x", "/", "/etc", "out", "up", "out/w"])
def test_what_leads_out_is_refused(workspace: Workspace, path: str) -> None:
    with pytest.raises(OutsideWorkspace):
        workspace.relative(path)


def test_a_missing_directory_and_a_file_are_refused(workspace: Workspace) -> None:
    with pytest.raises(PathNotFound):
        workspace.relative("nowhere")
    with pytest.raises(WrongPathKind):
        workspace.relative("file")
