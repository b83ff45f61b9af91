"""Changes whose program ends, or whose store fails, before they are settled."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.changes import FileChanges, ReadEtags
from toolrunner.fileworker.protocol import (
    Answer,
    Commit,
    Done,
    Planned,
    PlanWrite,
    Request,
    RollBack,
)
from toolrunner.fileworker.values import Image
from toolrunner.primitives.domain import Scope, WorkspaceId
from toolrunner.primitives.errors import FileWorkerGone, OutcomeUnknown

SCOPE = Scope(WorkspaceId("w"))
IMAGE = Image("a", b"old\n", 0o644, "before", "after")
PLAN = PlanWrite("t", "a", b"new\n")


def nothing() -> None:
    """Let it be done."""


def gone() -> None:
    raise FileWorkerGone


@dataclass
class FakeFileWorkers:
    """Answers at once, after what a test does to each kind of request."""

    before: dict[type[Request], Callable[[], None]] = field(default_factory=dict)
    asked: list[type[Request]] = field(default_factory=list)

    def process_of(self, workspace_id: WorkspaceId) -> str:
        return ""

    async def ask(
        self, workspace_id: WorkspaceId, request: Request, *, limit_s: float = 0
    ) -> Answer:
        self.asked.append(type(request))
        self.before.get(type(request), nothing)()
        return Planned((), images=(IMAGE,)) if isinstance(request, PlanWrite) else Done()


@pytest.fixture
def file_workers() -> FakeFileWorkers:
    return FakeFileWorkers()


@pytest.fixture
def workspaces(tmp_path: Path) -> Workspaces:
    return Workspaces(tmp_path)


@pytest.fixture
def changes(file_workers: FakeFileWorkers, workspaces: Workspaces) -> FileChanges:
    return FileChanges(file_workers, workspaces, ReadEtags(), lambda: "t")  # type: ignore[arg-type]


async def test_what_could_not_be_taken_back_is_tried_until_it_is(
    changes: FileChanges, file_workers: FakeFileWorkers
) -> None:
    file_workers.before = {Commit: gone, RollBack: gone}
    with pytest.raises(OutcomeUnknown):
        await changes.apply(SCOPE, "e1", PLAN)
    for _ in range(2):
        with pytest.raises(FileWorkerGone):
            await changes.recover(SCOPE.workspace_id)
    with pytest.raises(FileWorkerGone):
        await changes.apply(SCOPE, "e2", PLAN)
    file_workers.before, file_workers.asked = {}, []
    await changes.recover(SCOPE.workspace_id)
    await changes.recover(SCOPE.workspace_id)
    assert file_workers.asked == [RollBack]


async def test_what_is_made_and_cannot_be_stored_is_taken_back_at_once_and_not_years_later(
    changes: FileChanges, file_workers: FakeFileWorkers, workspaces: Workspaces
) -> None:
    undo = workspaces.prepared(SCOPE.workspace_id).undo
    hidden = undo.with_name("hidden")

    def hide() -> None:
        undo.rename(hidden)

    file_workers.before = {Commit: hide}
    with pytest.raises(FileNotFoundError):
        await changes.apply(SCOPE, "e1", PLAN)
    if undo.exists():
        undo.rmdir()
    hidden.rename(undo)
    await changes.recover(SCOPE.workspace_id)
    assert file_workers.asked == [PlanWrite, Commit, RollBack]
