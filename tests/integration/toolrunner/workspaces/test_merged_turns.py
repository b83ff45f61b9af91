"""Merges of forks by turns: taken back with the turn, and refused to owners that were replaced."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from parley.api.workspace.v1 import workspace_pb2
from support.faults.points import FaultPoints
from support.host.conditions import until
from support.toolrunner.files import Files
from support.toolrunner.hosted_workspaces import Placer, fork, scratch
from support.toolrunner.node import House, connected, node, reason_of
from support.toolrunner.turn_files import ChatTurns, outcomes, tree_of

STAGED = "merge.staged"


@pytest.fixture
def points(tmp_path: Path) -> FaultPoints:
    (tmp_path / "points").mkdir()
    return FaultPoints(tmp_path / "points")


@pytest.fixture
async def placer(
    tmp_path_factory: pytest.TempPathFactory, points: FaultPoints
) -> AsyncIterator[Placer]:
    house = House.build(tmp_path_factory.mktemp("h"))
    house.settings["TOOLRUNNER_FAULTPOINTS_DIRECTORY"] = str(points.directory)
    house.settings["TOOLRUNNER_ENVIRONMENT"] = "development"
    async with node(house), connected(house) as client:
        yield Placer(client, house.data)


async def test_what_a_turn_merged_is_taken_back_with_it(placer: Placer) -> None:
    parent_id = await placer.ready(scratch(a="1", b="b"))
    fork_id = await placer.ready(fork(parent_id))
    (placer.root(fork_id) / "a").write_text("merged")
    (placer.root(fork_id) / "b").unlink()
    (placer.root(fork_id) / "made").mkdir()
    (placer.root(fork_id) / "made" / "c").write_text("c")
    before = tree_of(placer.root(parent_id))
    placer.enter(parent_id)
    turns = ChatTurns(placer.client, Files(placer.client, placer.root(parent_id)))
    report = await placer.merge(
        fork_id, parent_id, chat_id=placer.client.chat_id, turn_id=7, owner_epoch=1
    )
    assert report.applied

    restored = await turns.restore("r1", 7)

    assert outcomes(restored) == {
        "a": "restored",
        "b": "restored",
        "made": "restored",
        "made/c": "restored",
    }
    assert tree_of(placer.root(parent_id)) == before


async def test_an_owner_that_was_replaced_merges_nothing(placer: Placer) -> None:
    parent_id = await placer.ready(scratch(a="1"))
    fork_id = await placer.ready(fork(parent_id))
    (placer.root(fork_id) / "a").write_text("merged")

    async def merged(owner_epoch: int, *, dry_run: bool = False) -> workspace_pb2.MergeReport:
        return await placer.merge(
            fork_id,
            parent_id,
            dry_run=dry_run,
            request_id="dry" if dry_run else "once",
            chat_id=placer.client.chat_id,
            turn_id=7,
            owner_epoch=owner_epoch,
        )

    await merged(3, dry_run=True)

    refused = await reason_of(merged(2))

    assert refused == (grpc.StatusCode.FAILED_PRECONDITION, "STALE_OWNER")
    assert (placer.root(parent_id) / "a").read_text() == "1"
    first = await merged(3)
    assert (placer.root(parent_id) / "a").read_text() == "merged"
    assert await merged(4) == first


async def test_a_turn_merges_nothing_once_its_chat_has_worked_in_a_newer_turn(
    placer: Placer,
) -> None:
    parent_id = await placer.ready(scratch(a="1", b="1"))
    fork_id = await placer.ready(fork(parent_id))
    for name in ("a", "b"):
        (placer.root(fork_id) / name).write_text("merged")

    async def merged(turn_id: int, path: str) -> workspace_pb2.MergeReport:
        return await placer.merge(
            fork_id,
            parent_id,
            paths=[path],
            chat_id=placer.client.chat_id,
            turn_id=turn_id,
            owner_epoch=3,
        )

    assert (await merged(8, "a")).applied

    refused = await reason_of(merged(7, "b"))

    assert refused == (grpc.StatusCode.FAILED_PRECONDITION, "STALE_OWNER")
    assert (placer.root(parent_id) / "b").read_text() == "1"
    assert (await merged(8, "b")).applied


async def test_a_turn_merges_nothing_if_a_newer_one_begins_while_its_files_are_staged(
    placer: Placer, points: FaultPoints
) -> None:
    parent_id = await placer.ready(scratch(a="1"))
    fork_id = await placer.ready(fork(parent_id))
    root = placer.root(parent_id)
    (placer.root(fork_id) / "a").write_text("merged")
    placer.enter(parent_id)
    turns = ChatTurns(placer.client, Files(placer.client, root))

    async def merged(turn_id: int) -> workspace_pb2.MergeReport:
        return await placer.merge(
            fork_id, parent_id, chat_id=placer.client.chat_id, turn_id=turn_id, owner_epoch=3
        )

    points.arm(STAGED)
    async with asyncio.TaskGroup() as tasks:
        late = tasks.create_task(reason_of(merged(7)))
        await asyncio.to_thread(until, lambda: points.at(STAGED), "the staged files", within_s=30)
        turns.at(8)
        await turns.run("echo newer > b")
        points.disarm()

    assert late.result() == (grpc.StatusCode.FAILED_PRECONDITION, "STALE_OWNER")
    assert (root / "a").read_text() == "1"
    assert not (root.parent / ".parley-merge").exists()
    assert (await merged(8)).applied


@pytest.mark.parametrize(
    ("is_turn", "is_late", "is_applied"),
    [(True, False, False), (False, False, True), (True, True, True)],
    ids=["turn", "person", "late"],
)
async def test_a_merge_whose_caller_gives_up_is_applied_unless_that_is_a_turn_with_time_left(
    placer: Placer, points: FaultPoints, is_turn: bool, is_late: bool, is_applied: bool
) -> None:
    parent_id = await placer.ready(scratch(a="1"))
    fork_id = await placer.ready(fork(parent_id))
    (placer.root(fork_id) / "a").write_text("merged")
    author = {"chat_id": placer.client.chat_id, "turn_id": 7, "owner_epoch": 3} if is_turn else {}
    points.arm(STAGED)
    merging = placer.merge(fork_id, parent_id, timeout_s=5 if is_late else 60, **author)  # type: ignore[arg-type]
    async with asyncio.TaskGroup() as tasks:
        late = tasks.create_task(reason_of(merging))
        await asyncio.to_thread(until, lambda: points.at(STAGED), "the staged files", within_s=30)
        if not is_late:
            late.cancel()
    points.disarm()

    # The node looks only after it has ended the merge before.
    seen = await placer.merge(fork_id, parent_id, dry_run=True)

    assert [list(each.paths) for each in seen.applied_merges] == ([["a"]] if is_applied else [])
    assert (placer.root(parent_id) / "a").read_text() == ("merged" if is_applied else "1")


async def test_what_was_applied_is_shown_by_dry_runs_with_its_patch(placer: Placer) -> None:
    parent_id = await placer.ready(scratch(a="old\n", b="b\n"))
    fork_id = await placer.ready(fork(parent_id))
    (placer.root(fork_id) / "a").write_text("new\n")
    before = await placer.merge(fork_id, parent_id, dry_run=True)
    first = await placer.merge(fork_id, parent_id, request_id="once")
    await placer.merge(fork_id, parent_id, request_id="once")  # Repeated, and applied once.
    (placer.root(fork_id) / "b").unlink()

    between = await placer.merge(fork_id, parent_id, dry_run=True)
    await placer.merge(fork_id, parent_id)
    after = await placer.merge(fork_id, parent_id, dry_run=True)

    assert (list(before.applied_merges), list(first.applied_merges)) == ([], [])
    (applied,) = between.applied_merges
    assert (list(applied.paths), applied.omitted) == (["a"], 0)
    assert [(each.path, each.patch) for each in applied.patches] == [("a", before.patches[0].patch)]
    assert applied.applied_at.seconds > 0
    assert list(after.merged_paths) == []
    assert [list(each.paths) for each in after.applied_merges] == [["b"], ["a"]]


@pytest.mark.parametrize(
    ("turn_id", "owner_epoch", "is_chat"),
    [(1, 0, False), (0, 1, False), (-1, 1, True), (1, 0, True)],
)
async def test_a_merge_without_its_whole_author_is_refused(
    placer: Placer, turn_id: int, owner_epoch: int, is_chat: bool
) -> None:
    refused = await reason_of(
        placer.merge(
            placer.new_id(),
            placer.new_id(),
            chat_id=placer.client.chat_id if is_chat else "",
            turn_id=turn_id,
            owner_epoch=owner_epoch,
        )
    )
    assert refused == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
