"""A restore that is cut off before or after any step goes on when it is asked for again."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from parley.clock import FakeClock
from parley.tasks import ShieldedTasks
from support.host.supervised import supervision
from support.toolrunner.in_process_file_workers import InProcessFileWorkers
from support.toolrunner.turn_files import tree_of
from toolrunner.checkpoints.domain import Outcome, Turn
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.checkpoints.store import Restore
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files import restores
from toolrunner.files.changes import FileChanges, ReadEtags
from toolrunner.files.restores import FileRestores
from toolrunner.fileworker.protocol import Answer, Request, RestoreEntries
from toolrunner.journal.thread import open_journal
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone

SCOPE = Scope(
    WorkspaceId("00000000-0000-0000-0000-000000000002"),
    ChatId("00000000-0000-0000-0000-000000000001"),
    turn_id=7,
)
TURN = Turn(SCOPE.chat_id, 7)


@dataclass
class DyingFileWorkers(InProcessFileWorkers):
    """Dies before or after a number of batches."""

    dies_at: int = -1
    is_after: bool = False
    batches: int = 0

    async def ask(
        self, workspace_id: WorkspaceId, request: Request, *, limit_s: float = 0
    ) -> Answer:
        if not isinstance(request, RestoreEntries):
            return await super().ask(workspace_id, request, limit_s=limit_s)
        is_now = self.batches == self.dies_at
        self.batches += 1
        if is_now and not self.is_after:
            raise FileWorkerGone
        answer = await super().ask(workspace_id, request, limit_s=limit_s)
        if is_now:
            raise FileWorkerGone
        return answer


@dataclass
class Scene:
    """A workspace after a turn, whose restore is asked for."""

    root: Path
    before: dict[str, tuple[int, bytes]]
    after: dict[str, tuple[int, bytes]]
    restores: FileRestores
    workers: DyingFileWorkers

    async def restore(self, restore_id: str = "r1", undoes: str = "") -> Restore:
        return await self.restores.restore(SCOPE, 1, restore_id, TURN, undoes, frozenset())


@asynccontextmanager
async def scene_at(directory: Path) -> AsyncIterator[Scene]:
    clock, workspaces = FakeClock(), Workspaces(directory)
    root = workspaces.prepared(SCOPE.workspace_id).root
    (root / "kept/deep").mkdir(parents=True)
    for name in ("gone", "changed", "kept/deep/a", "to_directory"):
        (root / name).write_bytes(os.urandom(100))
    (root / "link").symlink_to("gone")
    workers = DyingFileWorkers(workspaces)
    changes = FileChanges(workers, workspaces, ReadEtags(), lambda: "t")  # type: ignore[arg-type]
    async with (
        Checkpoints(workspaces, clock, supervision(clock)) as checkpoints,
        ShieldedTasks() as tasks,
        open_journal(
            directory / "j.sqlite", new_generation="g", boot_id="b", clock=clock
        ) as journal,
    ):
        before = tree_of(root)
        await checkpoints.before_process(SCOPE)
        for name in ("gone", "kept/deep/a", "link", "to_directory"):
            (root / name).unlink()
        (root / "kept/deep").rmdir()
        (root / "to_directory").mkdir()
        (root / "to_directory/new").write_bytes(b"new")
        (root / "changed").write_bytes(b"changed")
        (root / "link").symlink_to("changed")
        made = FileRestores(
            checkpoints,
            workers,  # type: ignore[arg-type]
            changes,
            workspaces,
            tasks,
            journal,
        )
        yield Scene(root, before, tree_of(root), made, workers)
        workers.close()


@pytest.fixture(autouse=True)
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send each entry by itself, so that a worker can die between any two."""
    monkeypatch.setattr(restores, "BATCH_ENTRIES", 1)


@pytest.mark.parametrize("is_after", [False, True], ids=["before", "after"])
async def test_a_restore_that_is_cut_off_at_any_step_goes_on(
    tmp_path: Path, is_after: bool
) -> None:
    async with scene_at(tmp_path / "whole") as scene:
        whole = await scene.restore()
        count = scene.workers.batches
        assert tree_of(scene.root) == scene.before
    for place in range(count):
        async with scene_at(tmp_path / str(place)) as scene:
            scene.workers.dies_at, scene.workers.is_after = place, is_after
            with pytest.raises(FileWorkerGone):
                await scene.restore()

            done = await scene.restore()

            assert tree_of(scene.root) == scene.before
            assert {step.outcome for step in done.steps} == {Outcome.RESTORED}
            assert [step.path for step in done.steps] == [step.path for step in whole.steps]
            await scene.restore("r2", undoes="r1")
            assert tree_of(scene.root) == scene.after
    assert count >= 8


async def test_a_file_that_is_changed_while_the_restore_is_cut_off_is_left(tmp_path: Path) -> None:
    async with scene_at(tmp_path) as scene:
        scene.workers.dies_at = 0
        with pytest.raises(FileWorkerGone):
            await scene.restore()
        (scene.root / "changed").write_bytes(b"by a person")

        done = await scene.restore()

        left = {step.path for step in done.steps if step.outcome is Outcome.CONFLICT}
        assert left == {"changed"}
        assert (scene.root / "changed").read_bytes() == b"by a person"
