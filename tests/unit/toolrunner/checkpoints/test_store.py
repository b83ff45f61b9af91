"""What is kept of a workspace: bounds, pruning, and files that cannot be used."""

import os
from pathlib import Path

import pytest

from parley.clock import FakeClock
from support.host.supervised import supervision
from toolrunner.checkpoints.domain import Change, Entry, EntryKind, Outcome, Turn
from toolrunner.checkpoints.scan import Limits
from toolrunner.checkpoints.service import Checkpoints
from toolrunner.checkpoints.store import FILE, Bounds, CheckpointStore
from toolrunner.directories.workspaces import Workspaces
from toolrunner.primitives.domain import ChatId, Scope, WorkspaceId

CHAT = ChatId("00000000-0000-0000-0000-000000000001")
WORKSPACE = WorkspaceId("00000000-0000-0000-0000-000000000002")
DAY_S = 24 * 3600.0


def entry(number: int) -> Entry:
    return Entry(EntryKind.FILE, f"etag {number}", 0o644)


def with_turns(store: CheckpointStore, count: int, size: int = 10) -> None:
    """Let turns change a file each, a second after another."""
    for number in range(1, count + 1):
        turn = Turn(CHAT, number)
        with store.transaction(is_synced=False):
            store.put_content(f"etag {number}", bytes(size))
            place = store.begin(turn, float(number), is_open=False)
            store.add_change(place, Change(0, "a", entry(number), entry(number + 1), turn))


def turns_of(store: CheckpointStore) -> list[int]:
    return [change.turn.turn_id for change in store.changes_since(Turn(CHAT, 1))]


@pytest.mark.parametrize(
    ("bounds", "now", "kept"),
    [
        (Bounds(turns_max=3), 10.0, [8, 9, 10]),
        (Bounds(age_s=4.0), 10.0, [6, 7, 8, 9, 10]),
        (Bounds(bytes_max=25), 10.0, [9, 10]),
        (Bounds(), 10.0, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        (Bounds(), 15 * DAY_S, []),
    ],
)
def test_the_oldest_turns_are_dropped_beyond_the_bounds(
    tmp_path: Path, bounds: Bounds, now: float, kept: list[int]
) -> None:
    store = CheckpointStore.open(tmp_path, bounds)
    with_turns(store, 10)

    with store.transaction(is_synced=True):
        is_pruned = store.prune(now)

    assert is_pruned == (len(kept) < 10)
    assert turns_of(store) == kept
    assert store.stored_bytes() == 10 * len(kept)
    assert store.is_incomplete(Turn(CHAT, 1)) == is_pruned
    assert not store.is_incomplete(Turn(CHAT, 11))
    store.close()


def test_a_file_that_is_no_database_is_moved_away(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database" * 1000)

    store = CheckpointStore.open(tmp_path, Bounds())

    with_turns(store, 1)
    assert turns_of(store) == [1]
    assert (tmp_path / FILE).with_suffix(".unreadable").exists()
    store.close()


async def changed_by_process(
    tmp_path: Path, limits: Limits, bounds: Bounds
) -> tuple[dict[str, Outcome], bool]:
    """Let a process of a turn change three files of different sizes; return what is restorable."""
    clock = FakeClock()
    workspaces = Workspaces(tmp_path)
    root = workspaces.prepared(WORKSPACE).root
    sizes = {"a": 100, "b": 1000, "c": 5000}
    for name, size in sizes.items():
        (root / name).write_bytes(os.urandom(size))
    async with Checkpoints(workspaces, clock, supervision(clock), bounds, limits) as checkpoints:
        scope = Scope(WORKSPACE, CHAT, turn_id=7)
        await checkpoints.before_process(scope)
        for name in sizes:
            (root / name).write_bytes(b"changed")
        preview = await checkpoints.preview(scope, Turn(CHAT, 7))
    return {step.path: step.outcome for step in preview.steps}, preview.is_incomplete


async def test_contents_beyond_the_bounds_are_not_kept_and_told(tmp_path: Path) -> None:
    kept, lost = Outcome.RESTORED, Outcome.NOT_KEPT

    by_size = await changed_by_process(tmp_path / "1", Limits(content_bytes_max=500), Bounds())
    by_room = await changed_by_process(tmp_path / "2", Limits(), Bounds(bytes_max=1500))
    by_time = await changed_by_process(tmp_path / "3", Limits(read_s=0.0), Bounds())
    by_count = await changed_by_process(tmp_path / "4", Limits(entries_max=2), Bounds())

    assert by_size == ({"a": kept, "b": lost, "c": lost}, False)
    assert by_room == ({"a": kept, "b": kept, "c": lost}, False)
    assert by_time == ({"a": lost, "b": lost, "c": lost}, False)
    assert by_count == ({}, True)


async def test_a_workspace_that_was_made_anew_has_no_checkpoints_of_the_old_one(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    workspaces = Workspaces(tmp_path)
    workspace = workspaces.prepared(WORKSPACE)
    scope = Scope(WORKSPACE, CHAT, turn_id=7)
    async with Checkpoints(workspaces, clock, supervision(clock)) as checkpoints:
        (workspace.root / "a").write_bytes(b"1")
        await checkpoints.before_process(scope)
        (workspace.root / "a").write_bytes(b"2")
        await checkpoints.settle(WORKSPACE)
        workspace.directory.rename(tmp_path / "removed")
        workspaces.prepared(WORKSPACE)

        preview = await checkpoints.preview(scope, Turn(CHAT, 7))

    assert preview.steps == ()
