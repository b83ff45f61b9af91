"""A merge that can be neither applied nor undone: the originals stay, and it is completed later."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from support.faults.points import FaultPoints
from support.host.conditions import until
from support.toolrunner.hosted_workspaces import Placer, fork, scratch
from support.toolrunner.node import House, connected, node, reason_of
from toolrunner.workspaces.merge.application import DAMAGED_PLAN, PLAN

DECIDED = "merge.decided"
LOGGER = "toolrunner.workspaces.merge.service"
UNKNOWN = (grpc.StatusCode.ABORTED, "OUTCOME_UNKNOWN")


@pytest.fixture
def points(tmp_path: Path) -> FaultPoints:
    (tmp_path / "points").mkdir()
    return FaultPoints(tmp_path / "points")


@pytest.fixture
def house(tmp_path_factory: pytest.TempPathFactory, points: FaultPoints) -> House:
    house = House.build(tmp_path_factory.mktemp("h"))
    house.settings["TOOLRUNNER_FAULTPOINTS_DIRECTORY"] = str(points.directory)
    house.settings["TOOLRUNNER_ENVIRONMENT"] = "development"
    return house


@asynccontextmanager
async def placed(house: House) -> AsyncIterator[Placer]:
    async with node(house), connected(house) as client:
        yield Placer(client, house.data)


async def unfinished(placer: Placer, points: FaultPoints) -> tuple[str, str]:
    """Have a merge stop between its steps, unable to be undone; return the fork and the parent."""
    parent_id = await placer.ready(scratch(d__x="original", z="1"))
    fork_id = await placer.ready(fork(parent_id))
    root = placer.root(parent_id)
    (placer.root(fork_id) / "d" / "x").write_text("merged")
    (placer.root(fork_id) / "z").write_text("merged")
    points.arm(DECIDED)
    async with asyncio.TaskGroup() as tasks:
        refused = tasks.create_task(reason_of(placer.merge(fork_id, parent_id)))
        await asyncio.to_thread(until, lambda: points.at(DECIDED), "the plan", within_s=30)
        # As far as the first step, after which the directory is removed and the other file changed.
        (root / "d" / "x").rename(root.parent / ".parley-merge" / "old" / "0")
        (root / "d").rmdir()
        (root / "z").write_text("meanwhile")
        points.disarm()
    assert refused.result() == UNKNOWN
    assert (root.parent / ".parley-merge" / "old" / "0").read_text() == "original"
    return fork_id, parent_id


async def test_the_originals_stay_until_the_next_merge_can_restore_them(
    house: House, points: FaultPoints
) -> None:
    async with placed(house) as placer:
        fork_id, parent_id = await unfinished(placer, points)
        root = placer.root(parent_id)
        again = await reason_of(placer.merge(fork_id, parent_id, dry_run=True))
        assert again == UNKNOWN
        assert (root.parent / ".parley-merge" / "old" / "0").read_text() == "original"
        (root / "d").mkdir()

        report = await placer.merge(fork_id, parent_id, paths=["z"], dry_run=True)

        assert (root / "d" / "x").read_text() == "original"
        assert [each.path for each in report.conflicts] == ["z"]
        assert not (root.parent / ".parley-merge").exists()
        assert not (root.parent / PLAN).exists()
        assert (await placer.merge(fork_id, parent_id, paths=["d"])).applied
        assert (root / "d" / "x").read_text() == "merged"


async def test_the_files_of_a_merge_whose_plan_is_damaged_are_given_to_the_workspace(
    house: House, points: FaultPoints
) -> None:
    async with placed(house) as placer:
        fork_id, parent_id = await unfinished(placer, points)
        root = placer.root(parent_id)
        (root.parent / PLAN).write_bytes(b"{")

        refused = await reason_of(placer.merge(fork_id, parent_id))

        original = root / "unfinished-merge-1" / "old" / "0"
        assert (refused, original.read_text()) == (UNKNOWN, "original")
        assert not (root.parent / ".parley-merge").exists()
        assert (root.parent / DAMAGED_PLAN).read_bytes() == b"{"
        (root / "d").mkdir()
        original.rename(root / "d" / "x")
        assert (await placer.merge(fork_id, parent_id, paths=["d"])).applied
        assert (root / "d" / "x").read_text() == "merged"


async def test_a_node_starts_although_merges_cannot_be_completed_and_completes_the_others(
    house: House, points: FaultPoints, caplog: pytest.LogCaptureFixture
) -> None:
    async with placed(house) as placer:
        _, unreadable_id = await unfinished(placer, points)
        _, blocked_id = await unfinished(placer, points)
        _, changed_id = await unfinished(placer, points)
        _, restored_id = await unfinished(placer, points)
    unreadable, changed = (placer.root(each).parent / PLAN for each in (unreadable_id, changed_id))
    unreadable.write_bytes(b"{")
    changed.write_bytes(
        changed.read_bytes().replace(b'"is_turned_back":true', b'"is_turned_back":false')
    )
    for each in (changed_id, restored_id):
        (placer.root(each) / "d").mkdir()

    async with placed(house) as placer:
        ready = (await placer.states()).values()

    assert set(ready) == {"ready"}
    logged = [
        (record.levelname, getattr(record, "workspace_id", ""))
        for record in caplog.records
        if record.name == LOGGER
    ]
    failed_ids = (unreadable_id, blocked_id, changed_id)
    assert sorted(logged) == sorted(("ERROR", each) for each in failed_ids)
    for each in (unreadable_id, blocked_id):
        moved = placer.root(each).parent / ".parley-merge" / "old" / "0"
        assert moved.read_text() == "original"
        assert (placer.root(each).parent / PLAN).exists()
    for each in (changed_id, restored_id):
        assert (placer.root(each) / "d" / "x").read_text() == "original"
        assert not (placer.root(each).parent / ".parley-merge").exists()
