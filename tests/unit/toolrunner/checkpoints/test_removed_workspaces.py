"""A workspace that was removed stays removed, whatever still runs for it."""

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from parley.clock import FakeClock
from support.host.supervised import supervision
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.directories.workspaces import Workspaces
from toolrunner.filesystem.trash import Trash
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId
from toolrunner.primitives.errors import WorkspaceNotFound

WORKSPACE = WorkspaceId("w")


@dataclass
class Removals:
    """Allows every call, and knows which workspaces were removed."""

    removed: set[WorkspaceId] = field(default_factory=set)

    def check(self, scope: Scope, *, allow_not_ready: bool) -> None:
        """Allow it."""

    def is_removed(self, workspace_id: WorkspaceId) -> bool:
        return workspace_id in self.removed


def removed(workspaces: Workspaces) -> Path:
    """Remove a workspace as its host does; return the directory that it had."""
    workspaces.admission = Removals({WORKSPACE})
    directory = workspaces.at(WORKSPACE).directory
    shutil.rmtree(directory)
    return directory


async def test_the_search_for_changes_does_not_create_a_removed_workspace_again(
    tmp_path: Path,
) -> None:
    clock, workspaces = FakeClock(), Workspaces(tmp_path / "workspaces")
    workspaces.prepared(WORKSPACE)
    async with asyncio.timeout(20), Checkpoints(workspaces, clock, supervision(clock)) as kept:
        await kept.before_process(Scope(WORKSPACE, ChatId("c"), turn_id=1))
        directory = removed(workspaces)
        # What happens soon after a process ended, also one that ended with its workspace.
        await kept.settle(WORKSPACE)
        assert not directory.exists()
        with pytest.raises(WorkspaceNotFound):
            await kept.sizes(WORKSPACE, ())


def test_a_removed_workspace_is_not_created_again_and_counts_as_missing(tmp_path: Path) -> None:
    workspaces = Workspaces(tmp_path / "workspaces")
    workspaces.prepared(WORKSPACE)
    directory = removed(workspaces)
    with pytest.raises(WorkspaceNotFound):
        workspaces.prepared(WORKSPACE)
    assert not directory.exists()
    # Even if an earlier version left a directory: its entries in the journal must go.
    directory.mkdir()
    assert workspaces.missing([WORKSPACE]) == (WORKSPACE,)


def test_the_trash_of_a_removed_directory_is_not_created_again(tmp_path: Path) -> None:
    scratch = tmp_path / "w" / "scratch"
    trash = Trash(scratch / "trash")
    assert trash.empty() == 0
    with pytest.raises(FileNotFoundError):
        trash.throw(scratch / "p")
    assert not (tmp_path / "w").exists()
