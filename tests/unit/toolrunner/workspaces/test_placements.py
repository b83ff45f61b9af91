"""The placements of a node on disk: what is forgotten of them, and who changes what is known."""

import asyncio
import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from toolrunner.primitives.domain import WorkspaceId
from toolrunner.workspaces.domain.placement import HostState, Placement
from toolrunner.workspaces.domain.spec import Git, Scratch, WorkspaceSpec
from toolrunner.workspaces.store import (
    REMOVED_KEPT,
    REMOVED_MAX,
    Request,
    open_placements,
    outdated,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
WITHIN_S = 10


def placement(
    name: str,
    state: HostState = HostState.REMOVED,
    *,
    age: timedelta = timedelta(0),
    epoch: int = 1,
) -> Placement:
    return Placement(WorkspaceId(name), epoch, "ann", state, WorkspaceSpec(Scratch()), NOON - age)


async def names(path: Path) -> set[str]:
    async with open_placements(path, new_id=lambda: "n") as placements:
        return set(placements.all)


def test_the_names_of_stored_fields_stay() -> None:
    spec = WorkspaceSpec(Git("https://host/it.git", is_worktree=True))
    stored = msgspec.json.encode(Placement(WorkspaceId("w"), 1, "ann", HostState.READY, spec, NOON))
    document = msgspec.json.decode(stored)
    assert document["recipe"]["source"] == {
        **{"type": "git", "url": "https://host/it.git", "ref": "", "branch": "", "depth": 0},
        "borrows": True,
    }
    assert msgspec.json.decode(stored, type=Placement).spec == spec


async def test_what_was_removed_long_ago_is_forgotten_when_more_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "placements.sqlite"
    long_ago = REMOVED_KEPT + timedelta(seconds=1)
    async with asyncio.timeout(WITHIN_S), open_placements(path, new_id=lambda: "n") as placements:
        for each in (
            placement("old", age=long_ago),
            placement("recent", age=REMOVED_KEPT),
            placement("stopped", HostState.STOPPED, age=long_ago),
        ):
            await placements.commit(each)
        assert set(placements.all) == {"old", "recent", "stopped"}
        await placements.commit(placement("made", HostState.PREPARING))
        assert "old" in placements.all
        await placements.commit(placement("newest"))
        known = set(placements.all)
    assert known == await names(path) == {"recent", "stopped", "made", "newest"}


def test_of_many_that_were_removed_the_oldest_are_forgotten() -> None:
    known = {
        each.workspace_id: each
        for each in (
            placement(f"w{number}", age=timedelta(seconds=number))
            for number in range(REMOVED_MAX + 2)
        )
    }
    found = outdated(known, placement("newest"))
    # With the newest there are as many as are kept.
    oldest = {f"w{REMOVED_MAX - 1}", f"w{REMOVED_MAX}", f"w{REMOVED_MAX + 1}"}
    assert {each.workspace_id for each in found} == oldest


async def test_one_that_is_placed_anew_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "placements.sqlite"
    old = placement("w", age=2 * REMOVED_KEPT)
    async with asyncio.timeout(WITHIN_S), open_placements(path, new_id=lambda: "n") as placements:
        await placements.commit(old)
        again = msgspec.structs.replace(old, state=HostState.PREPARING, epoch=2)
        async with asyncio.TaskGroup() as tasks:
            # Both are on their way before either is on disk.
            tasks.create_task(placements.commit(again))
            tasks.create_task(placements.commit(placement("newest")))
        known = dict(placements.all)
    assert known[again.workspace_id] == again
    assert await names(path) == {"w", "newest"}


@dataclass
class Watched(dict[WorkspaceId, Placement]):
    """Notes who changes it."""

    def __post_init__(self) -> None:
        self.changed_by: set[int] = set()

    def __setitem__(self, key: WorkspaceId, value: Placement) -> None:
        self.changed_by.add(threading.get_ident())
        super().__setitem__(key, value)


async def test_what_is_known_is_changed_by_the_loop_alone_though_nobody_waits(
    tmp_path: Path,
) -> None:
    request = Request("r", "m", b"h")
    async with (
        asyncio.timeout(WITHIN_S),
        open_placements(tmp_path / "p.sqlite", new_id=lambda: "n") as placements,
    ):
        watched = placements.all = Watched()
        given_up = asyncio.ensure_future(  # noqa: TID251 (to be cancelled)
            placements.commit(placement("w", HostState.READY), (request, b"done"))
        )
        await asyncio.wait([given_up], timeout=0)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        await placements.settled()
        assert set(watched) == {"w"}
    assert watched.changed_by == {threading.get_ident()}
