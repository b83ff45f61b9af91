"""A crash before every single step of a change and of its undoing: what is left is one or other."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from support.host.crash_points import crashing_before
from support.toolrunner.in_process_file_workers import InProcessFileWorkers
from toolrunner.directories.workspaces import Workspaces
from toolrunner.files.changes import ChangeResult, FileChanges, ReadEtags
from toolrunner.filesystem.errors import FileRefused, Reason
from toolrunner.fileworker.protocol import PlanDelete, PlanEdits, PlanMove
from toolrunner.fileworker.values import FileEdit, TextEdit
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId

SCOPE = Scope(WorkspaceId("w"), ChatId("c"))
OLD, NEW = ("a old\n", "b old\n"), ("a new\n", "b new\n")


@dataclass
class Desk:
    """One life of a service and its files."""

    changes: FileChanges
    root: Path

    async def edit(self) -> ChangeResult:
        files = tuple(FileEdit(name, (TextEdit("old", "new"),)) for name in ("a", "d/b"))
        return await self.changes.apply(SCOPE, "edit", PlanEdits("t", files))

    async def undo(self, path: str = "") -> ChangeResult:
        request_id = "" if path else "edit"
        return await self.changes.undo(
            SCOPE, "undo", edit_request_id=request_id, path=path, guards_git=True
        )

    def texts(self) -> tuple[str, str]:
        return (self.root / "a").read_text(), (self.root / "d" / "b").read_text()

    def leavings(self) -> list[str]:
        undo = self.root.parent / "undo"
        odd = [path.name for path in undo.iterdir() if path.suffix in (".pending", ".undone")]
        return [*odd, *(path.name for path in self.root.rglob(".parley-*"))]


@asynccontextmanager
async def pooled(directory: Path) -> AsyncIterator[Desk]:
    workspaces = Workspaces(directory)
    file_workers = InProcessFileWorkers(workspaces)
    tokens = count()
    changes = FileChanges(file_workers, workspaces, ReadEtags(), lambda: f"u{next(tokens)}")  # type: ignore[arg-type]
    try:
        yield Desk(changes, workspaces.prepared(SCOPE.workspace_id).root)
    finally:
        file_workers.close()


async def walked(
    tmp_path: Path,
    before: Callable[[Desk], Awaitable[object]],
    act: Callable[[Desk], Awaitable[object]],
    check: Callable[[Desk], Awaitable[None]],
) -> int:
    """Crash before each step of an act, each time in a new directory; return how many there are."""
    for number in count():
        directory = tmp_path / str(number)
        async with pooled(directory) as first:
            (first.root / "d").mkdir()
            (first.root / "a").write_text(OLD[0])
            (first.root / "d" / "b").write_text(OLD[1])
            await before(first)
            with crashing_before(number) as point:
                await act(first)
        async with pooled(directory) as second:
            await second.changes.recover(SCOPE.workspace_id)
            assert second.leavings() == []
            await check(second)
        if not point.is_reached:
            return number
    raise AssertionError


async def nothing(pooled: Desk) -> None:
    """Begin at once."""


async def test_a_change_is_made_as_a_whole_or_not_at_all_and_then_can_be_undone(
    tmp_path: Path,
) -> None:
    seen = set()

    async def check(pooled: Desk) -> None:
        seen.add(pooled.texts())
        if pooled.texts() == NEW:
            await pooled.undo()
        assert pooled.texts() == OLD

    assert await walked(tmp_path, nothing, Desk.edit, check) >= 6
    assert seen == {OLD, NEW}


async def test_an_undoing_is_made_or_can_be_made_again(tmp_path: Path) -> None:
    seen = set()

    async def check(pooled: Desk) -> None:
        seen.add(pooled.texts())
        if pooled.texts() == NEW:
            await pooled.undo()
        assert pooled.texts() == OLD
        with pytest.raises(FileRefused) as refused:
            await pooled.undo()
        assert refused.value.reason is Reason.NOTHING_TO_UNDO

    assert await walked(tmp_path, Desk.edit, Desk.undo, check) >= 8
    assert seen == {OLD, NEW}


async def test_an_undoing_of_one_file_leaves_that_of_the_other(tmp_path: Path) -> None:
    seen = set()
    halfway = (OLD[0], NEW[1])

    async def check(pooled: Desk) -> None:
        seen.add(pooled.texts())
        if pooled.texts() == NEW:
            await pooled.undo("a")
        assert pooled.texts() == halfway
        await pooled.undo("d/b")
        assert pooled.texts() == OLD

    assert await walked(tmp_path, Desk.edit, lambda pooled: pooled.undo("a"), check) >= 8
    assert seen == {halfway, NEW}


def plant(pooled: Desk) -> None:
    """Have a tree of all that can be kept."""
    tree = pooled.root / "tree"
    (tree / "empty").mkdir(parents=True)
    (tree / "sub").mkdir(mode=0o700)
    (tree / "sub" / "f").write_bytes(b"\0content")
    (tree / "sub" / "f").chmod(0o751)
    (tree / "link").symlink_to("sub/f")
    (tree / "away").symlink_to("/nowhere")
    (pooled.root / "taken").write_text("replaced\n")


def seen_in(root: Path) -> dict[str, tuple[int, bytes]]:
    """Return all that is below a directory."""
    found = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content = b""
        if path.is_symlink():
            content = bytes(path.readlink())
        elif path.is_file():
            content = path.read_bytes()
        found[str(path.relative_to(root))] = (mode, content)
    return found


async def planted(pooled: Desk) -> None:
    plant(pooled)


async def delete(pooled: Desk) -> ChangeResult:
    return await pooled.changes.apply(SCOPE, "edit", PlanDelete("t", "tree", recursive=True))


async def move(pooled: Desk) -> ChangeResult:
    plan = PlanMove("t", "tree/sub/f", "taken", overwrite=True)
    return await pooled.changes.apply(SCOPE, "edit", plan)


@pytest.mark.parametrize("act", [delete, move])
async def test_what_is_deleted_or_moved_is_so_as_a_whole_and_comes_back(
    tmp_path: Path, act: Callable[[Desk], Awaitable[ChangeResult]]
) -> None:
    async with pooled(tmp_path / "model") as model:
        (model.root / "d").mkdir()
        (model.root / "a").write_text(OLD[0])
        (model.root / "d" / "b").write_text(OLD[1])
        plant(model)
        before = seen_in(model.root)
        await act(model)
        after = seen_in(model.root)
    assert before != after

    async def check(pooled: Desk) -> None:
        assert seen_in(pooled.root) in (before, after)
        if seen_in(pooled.root) == after:
            await pooled.undo()
        assert seen_in(pooled.root) == before
        with pytest.raises(FileRefused) as refused:
            await pooled.undo()
        assert refused.value.reason is Reason.NOTHING_TO_UNDO

    async def acted(pooled: Desk) -> None:
        plant(pooled)
        await act(pooled)

    assert await walked(tmp_path / "doing", planted, act, check) >= 4
    assert await walked(tmp_path / "undoing", acted, Desk.undo, check) >= 5
