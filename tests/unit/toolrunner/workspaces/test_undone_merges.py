"""Merges that are cut off, undone, or disturbed by programs of the workspace."""

import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path

import msgspec
import pytest

from support.host.forked_user import as_ordinary_user
from support.host.limits import without_descriptors
from support.toolrunner.merged_trees import BEGINNING, Pair, read, read_of, write
from toolrunner.filesystem.beneath import Root
from toolrunner.primitives.errors import MergeInterrupted, MergeUnfinished
from toolrunner.workspaces.merge.application import PLAN, DamagedPlan, go_back, go_forward
from toolrunner.workspaces.merge.comparison import Side
from toolrunner.workspaces.merge.fork_base import Base
from toolrunner.workspaces.merge.plan import MergePlan, MergeStep, MoveAway, MoveIn, Places


@pytest.fixture(params=[True, False], ids=["private", "in-workspace"])
def is_private(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def pair(tmp_path: Path, is_private: bool) -> Pair:
    return Pair.made(tmp_path, BEGINNING, is_private=is_private)


def test_a_parent_that_changes_meanwhile_stays_as_it_is(pair: Pair) -> None:
    write(pair.fork, {"a": "f\n", "b": "f", "n/new": "f"})
    (pair.fork / "d/x").unlink()
    _, plan = pair.plan()
    write(pair.parent, {"b": "meanwhile"})
    before = read(pair.parent)
    pair.merging.decide(plan)
    with pytest.raises(MergeInterrupted):
        pair.merging.carry_out(plan)
    pair.merging.clear()
    before = {path: text for path, text in before.items() if not path.startswith(".parley")}
    assert read(pair.parent) == before


@contextmanager
def without_disk_space() -> Iterator[None]:
    """Have every write to a file refused; renames and directories need none."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_merge_that_fails_on_a_full_disk_is_undone_although_its_plan_cannot_be_written(
    pair: Pair,
) -> None:
    write(pair.fork, {"a": "f\n", "b": "f"})
    _, plan = pair.plan()
    pair.merging.decide(plan)
    write(pair.parent, {"b": "meanwhile"})
    with without_disk_space(), pytest.raises(MergeInterrupted):
        pair.merging.carry_out(plan)
    pair.merging.clear()
    assert read(pair.parent) == {**read_of(BEGINNING), "b": "meanwhile"}


def test_a_merge_that_cannot_be_undone_keeps_the_originals_until_it_can_be(pair: Pair) -> None:
    write(pair.fork, {"a": "f\n", "d/x": "f"})
    (pair.fork / "d/y").unlink()
    _, found = pair.plan()
    plan = msgspec.structs.replace(found, response=b"large")
    pair.merging.decide(plan)
    moved = [step for step in plan.steps if step.path.startswith("d/")]
    done(pair, msgspec.structs.replace(plan, steps=tuple(moved)), 2)
    (pair.parent / "d").rmdir()
    with pytest.raises(MergeUnfinished, match="d/"):
        pair.merging.carry_out(plan)

    pending = pair.merging.pending()

    assert pending == msgspec.structs.replace(plan, is_turned_back=True, response=b"")
    assert (pair.parent / "a").read_text() == BEGINNING["a"]
    assert pending is not None
    (pair.parent / "d").mkdir()
    pair.merging.carry_out(pending)
    pair.merging.clear()
    assert read(pair.parent) == read_of(BEGINNING)


@pytest.mark.parametrize("is_private", [False])
def test_a_merge_whose_staged_files_were_taken_away_changes_no_other_file(pair: Pair) -> None:
    write(pair.fork, {"a": "f\n", "b": "f", "new": "f", "other": "f"})
    _, plan = pair.plan()
    pair.merging.decide(plan)
    clearing = sum(isinstance(step, MoveAway) for step in plan.steps)
    done(pair, plan, clearing + 2)
    pair.stage.rename(pair.parent / "taken")
    write(pair.parent, {"other": "written meanwhile"})

    with pytest.raises(MergeInterrupted):
        pair.merging.carry_out(plan)
    pending = pair.merging.pending()
    assert pending is not None
    for kept in ("new", "old"):
        (pair.stage / kept).mkdir(parents=True, exist_ok=True)
    pair.merging.carry_out(pending)
    pair.merging.clear()

    found = {path: text for path, text in read(pair.parent).items() if "taken" not in path}
    untouched = {path: text for path, text in read_of(BEGINNING).items() if path not in "ab"}
    assert found == {**untouched, "other": "written meanwhile"}
    assert (pair.parent / "taken/old/0").read_text() == BEGINNING["a"]


@pytest.mark.parametrize("is_private", [True])
def test_a_program_that_empties_the_workspace_meanwhile_reaches_no_original(pair: Pair) -> None:
    write(pair.fork, {"a": "f\n", "b": "f"})
    _, plan = pair.plan()
    pair.merging.decide(plan)
    done(pair, plan, 2)
    for each in pair.parent.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()

    pair.merging.carry_out(msgspec.structs.replace(plan, is_turned_back=True))
    pair.merging.clear()

    assert read(pair.parent) == {"a": BEGINNING["a"], "b": BEGINNING["b"]}


def test_an_original_whose_path_was_taken_is_given_to_the_workspace(pair: Pair) -> None:
    write(pair.fork, {"a": "f\n", "b": "f"})
    _, plan = pair.plan()
    pair.merging.decide(plan)
    done(pair, plan, 1)
    write(pair.parent, {"a": "written meanwhile"})

    with pytest.raises(MergeInterrupted):
        pair.merging.carry_out(plan)
    pair.merging.clear()

    assert (pair.parent / "a").read_text() == "written meanwhile"
    assert (pair.parent / "b").read_text() == BEGINNING["b"]
    assert (pair.parent / "unfinished-merge-1/old/0").read_text() == BEGINNING["a"]
    assert not pair.stage.exists()


@pytest.mark.parametrize("move", [go_forward, go_back])
def test_a_step_whose_files_cannot_be_looked_at_fails(
    pair: Pair, move: Callable[[Places, MergeStep], None]
) -> None:
    write(pair.fork, {"a": "f\n"})
    _, plan = pair.plan()
    done(pair, plan, 1)
    with pair.merging.places(is_private=plan.is_private) as places:
        for step in plan.steps:
            with without_descriptors(), pytest.raises(OSError, match="Too many open files"):
                move(places, step)


def test_a_fork_whose_files_cannot_be_listed_is_not_taken_for_an_empty_one(pair: Pair) -> None:
    root, base = Root.open_directory(str(pair.fork)), Base.load(pair.directory / "base")
    with without_descriptors(), pytest.raises(OSError, match="Too many open files"):
        Side(root, base, is_fork=True)
    assert set(Side(root, base, is_fork=True).found) > {"a", "b", "d"}
    root.close()


def test_a_directory_that_may_not_be_read_is_not_taken_for_removed(pair: Pair) -> None:
    root, base = Root.open_directory(str(pair.fork)), Base.load(pair.directory / "base")
    (pair.fork / "d").chmod(0)

    def refused() -> str:
        try:
            Side(root, base, is_fork=True)
        except PermissionError as error:
            return str(error.filename)
        return ""

    assert as_ordinary_user(refused) == "d"
    root.close()


def test_the_files_of_each_damaged_plan_get_a_directory_of_their_own(pair: Pair) -> None:
    for number in (1, 2):
        write(pair.fork, {"a": f"{number}\n"})
        pair.plan()
        (pair.merging.directory / PLAN).write_bytes(b"{")
        with pytest.raises(DamagedPlan):
            pair.merging.pending()

        directory = pair.merging.set_aside()

        assert directory == f"unfinished-merge-{number}"
        assert (pair.parent / directory / "new" / "0").read_text() == f"{number}\n"
        assert pair.merging.pending() is None
    (pair.merging.directory / PLAN).write_bytes(b"{")
    assert pair.merging.set_aside() == ""  # As after a cut between both renames.
    assert pair.merging.pending() is None


def changed_everywhere(pair: Pair) -> MergePlan:
    """Change a fork in every way that there is a step for; return what a merge would do."""
    write(pair.fork, {"a": "f\n", "n/e/w": "f", "empty/": ""})
    (pair.fork / "b").unlink()
    (pair.fork / "b").symlink_to("a")
    shutil.rmtree(pair.fork / "d")
    write(pair.fork, {"d": "a file"})
    _, plan = pair.plan()
    pair.merging.decide(plan)
    return plan


def done(pair: Pair, plan: MergePlan, steps: int, back: int = 0) -> None:
    """Do so many steps, take so many back, and be killed."""
    with pair.merging.places(is_private=plan.is_private) as places:
        for step in plan.steps[:steps]:
            go_forward(places, step)
        for step in reversed(plan.steps[len(plan.steps) - back :]):
            go_back(places, step)


def test_a_merge_that_is_killed_after_any_step_is_ended_by_the_next_run(tmp_path: Path) -> None:
    steps_max = 1
    steps = 0
    while steps <= steps_max:
        pair = Pair.made(tmp_path / str(steps), BEGINNING)
        plan = changed_everywhere(pair)
        steps_max = len(plan.steps)
        done(pair, plan, steps)
        pending = pair.merging.pending()
        assert pending == plan
        pair.merging.carry_out(plan)
        pair.merging.clear()
        assert read(pair.parent) == read(pair.fork)
        steps += 1
    assert steps_max >= 9


def test_a_merge_that_is_killed_while_it_is_taken_back_leaves_the_parent_as_it_was(
    tmp_path: Path,
) -> None:
    pair = Pair.made(tmp_path / "first", BEGINNING)
    count = len(changed_everywhere(pair).steps)
    for steps, back in product(range(count + 1), (0, 1, count // 2, count)):
        pair = Pair.made(tmp_path / f"{steps}-{back}", BEGINNING)
        before = read(pair.parent)
        plan = changed_everywhere(pair)
        done(pair, plan, steps, back)
        pair.merging.carry_out(msgspec.structs.replace(plan, is_turned_back=True))
        pair.merging.clear()
        assert read(pair.parent) == before


def without_inodes(plan: MergePlan) -> MergePlan:
    """Return a plan as an older version wrote it."""
    steps = (
        msgspec.structs.replace(step, inode=0) if isinstance(step, MoveIn) else step
        for step in plan.steps
    )
    return msgspec.structs.replace(plan, steps=tuple(steps), is_private=False)


@pytest.mark.parametrize("is_private", [False])
def test_the_plan_of_an_older_version_is_undone_as_often_as_it_is_tried(pair: Pair) -> None:
    before = read(pair.parent)
    plan = without_inodes(changed_everywhere(pair))
    done(pair, plan, len(plan.steps))
    for _ in range(2):
        pair.merging.carry_out(msgspec.structs.replace(plan, is_turned_back=True))
    pair.merging.clear()
    assert read(pair.parent) == before


def test_a_file_that_is_written_after_an_undo_is_not_taken_for_one_of_the_merge(
    pair: Pair,
) -> None:
    write(pair.fork, {"new": "f", "d/x": "f"})
    _, plan = pair.plan()
    pair.merging.decide(plan)
    done(pair, plan, len(plan.steps))
    for each in ("x", "y"):
        (pair.parent / "d" / each).unlink()
    (pair.parent / "d").rmdir()
    undone = msgspec.structs.replace(plan, is_turned_back=True)
    with pytest.raises(MergeUnfinished):
        pair.merging.carry_out(undone)
    slots = {step.path: step.slot for step in plan.steps if isinstance(step, MoveIn)}
    inode = (pair.stage / "new" / str(slots["new"])).stat().st_ino

    write(pair.parent, {"new": "of a person", "d/": ""})
    assert (pair.parent / "new").stat().st_ino != inode
    pair.merging.carry_out(undone)
    pair.merging.clear()

    assert (pair.parent / "new").read_text() == "of a person"
    assert (pair.parent / "d/x").read_text() == BEGINNING["d/x"]


def test_the_originals_of_a_workspace_that_is_away_are_kept_until_it_is_back(pair: Pair) -> None:
    write(pair.fork, {"a": "f\n"})
    _, plan = pair.plan()
    pair.merging.decide(plan)
    done(pair, plan, 1)
    write(pair.parent, {"a": "written meanwhile"})
    pair.parent.rename(pair.directory / "elsewhere")
    with pytest.raises(MergeUnfinished):
        pair.merging.carry_out(plan)
    (pair.directory / "elsewhere").rename(pair.parent)
    pending = pair.merging.pending()
    assert pending is not None
    with pytest.raises(MergeInterrupted):
        pair.merging.carry_out(pending)
    pair.merging.clear()
    assert (pair.parent / "unfinished-merge-1/old/0").read_text() == BEGINNING["a"]


def test_a_file_that_has_its_place_and_its_staged_name_is_placed(pair: Pair) -> None:
    write(pair.fork, {"new": "f"})
    _, plan = pair.plan()
    os.link(pair.stage / "new/0", pair.parent / "new")
    pair.merging.carry_out(plan)
    pair.merging.clear()
    assert read(pair.parent) == read(pair.fork)
