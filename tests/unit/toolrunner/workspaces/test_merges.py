"""A fork that comes home: all of it or nothing, and every conflict told."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.session.examples import examples
from support.toolrunner.merged_trees import BEGINNING, Pair, read, read_of, write
from toolrunner.workspaces.merge.comparison import Strategy, cache_of
from toolrunner.workspaces.merge.three_way import ConflictKind

PATHS = ["a", "b", "d/x", "d/y", "d/e/z", "new", "link"]


@pytest.fixture(params=[True, False], ids=["private", "in-workspace"])
def is_private(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def pair(tmp_path: Path, is_private: bool) -> Pair:
    return Pair.made(tmp_path, BEGINNING, is_private=is_private)


def test_everything_that_a_fork_did_comes_home(pair: Pair) -> None:
    write(pair.fork, {"a": "one\n2\n3\n4\n5\n", "n/e/w": "new", "empty/": "", "other": "->b"})
    (pair.fork / "b").unlink()
    shutil.rmtree(pair.fork / "d")
    wanted = read(pair.fork)
    found = pair.merge()
    assert found.conflicts == ()
    assert read(pair.parent) == wanted


def test_edits_of_different_lines_of_a_file_are_brought_together(pair: Pair) -> None:
    write(pair.fork, {"a": "one\n2\n3\n4\n5\n"})
    write(pair.parent, {"a": "1\n2\n3\n4\nfive\n"})
    pair.merge()
    assert (pair.parent / "a").read_text() == "one\n2\n3\n4\nfive\n"


@given(data=st.data())
@settings(max_examples=examples(60), deadline=None)
def test_disjoint_changes_of_both_sides_are_both_there(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    pair = Pair.made(tmp_path_factory.mktemp("m"), BEGINNING)
    wanted = read(pair.parent)
    for path in data.draw(st.lists(st.sampled_from(PATHS), unique=True)):
        side = pair.fork if data.draw(st.booleans()) else pair.parent
        content = data.draw(st.sampled_from(["changed\n", "->b", None, "\n" * 100]))
        (side / path).unlink(missing_ok=True)
        wanted.pop(path, None)
        if content is not None:
            write(side, {path: content})
            wanted[path] = content
    found = pair.merge()
    merged = {path: text for path, text in read(pair.parent).items() if not path.endswith("/")}
    assert merged == {path: text for path, text in wanted.items() if not path.endswith("/")}
    assert found.conflicts == ()


def test_who_may_run_a_file_is_merged_apart_from_its_content(pair: Pair) -> None:
    (pair.fork / "a").chmod(0o755)
    write(pair.parent, {"a": "changed\n"})
    (pair.parent / "b").chmod(0o755)
    write(pair.fork, {"b": "changed"})
    pair.merge()
    merged = [(name, (pair.parent / name).stat().st_mode & 0o100) for name in ("a", "b")]
    assert merged == [("a", 0o100), ("b", 0o100)]
    assert [(pair.parent / name).read_text() for name in ("a", "b")] == ["changed\n", "changed"]


@pytest.mark.parametrize(
    ("in_fork", "in_parent", "conflicts"),
    [
        ({"a": "f\n"}, {"a": "p\n"}, {"a": ConflictKind.CONTENT}),
        ({"b": "f"}, {"b": None}, {"b": ConflictKind.DELETED_IN_PARENT}),
        ({"b": None}, {"b": "p"}, {"b": ConflictKind.DELETED_IN_FORK}),
        ({"n": "f"}, {"n": "p"}, {"n": ConflictKind.ADDED_TWICE}),
        ({"a": "\0f"}, {"a": "\0p"}, {"a": ConflictKind.BINARY}),
        ({"b": "->a"}, {"b": "p"}, {"b": ConflictKind.TYPE}),
        ({"link": "->f"}, {"link": "->p"}, {"link": ConflictKind.CONTENT}),
        ({"d/n": "f"}, {"d": "p"}, {"d/n": ConflictKind.TYPE}),
        ({"d/n": "f"}, {"d": "->b"}, {"d/n": ConflictKind.TYPE}),
        ({"d": "f"}, {"d/n": "p"}, {"d": ConflictKind.TYPE}),
        (
            {"d": "f"},
            {"d/x": "p"},
            {"d": ConflictKind.TYPE, "d/x": ConflictKind.DELETED_IN_FORK},
        ),
    ],
)
def test_every_kind_of_conflict_is_told_and_decided_as_asked(
    tmp_path: Path,
    in_fork: dict[str, str | None],
    in_parent: dict[str, str | None],
    conflicts: dict[str, ConflictKind],
) -> None:
    for strategy in (Strategy.KEEP_PARENT, Strategy.TAKE_FORK):
        pair = Pair.made(tmp_path / strategy, BEGINNING)
        for side, edits in ((pair.fork, in_fork), (pair.parent, in_parent)):
            change(side, edits)
        before, brought = read(pair.parent), read(pair.fork)
        found = pair.merge(strategy)
        told = {each.path: each.kind for each in found.conflicts}
        # Where the fork's version is taken, what is below it is out of the way.
        below = {
            path for path in conflicts if strategy is Strategy.TAKE_FORK and f"{path}/x" in told
        }
        assert told == {path: kind for path, kind in conflicts.items() if path not in below}
        merged = read(pair.parent)
        for path in conflicts:
            wanted = before if strategy is Strategy.KEEP_PARENT else brought
            assert merged.get(path) == wanted.get(path)


def change(side: Path, edits: dict[str, str | None]) -> None:
    """Change files of one side; what is in the way goes."""
    for name, content in edits.items():
        path = side / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if content is not None:
            write(side, {name: content})


def test_only_the_paths_asked_for_are_merged(pair: Pair) -> None:
    write(pair.fork, {"a": "f\n", "d/x": "f", "d/n": "f", "dd": "f"})
    pair.merge(paths=("d",))
    assert read(pair.parent) == {**read_of(BEGINNING), "d/x": "f", "d/n": "f"}


def test_repositories_are_left_alone(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {**BEGINNING, ".git/HEAD": "one", "sub/.git/HEAD": "one"})
    write(pair.fork, {".git/HEAD": "two", "sub/.git/HEAD": "two", ".git/new": "n"})
    assert pair.merge().changes == ()


CACHED = "pkg/__pycache__/m.cpython-311.pyc"


def test_two_forks_that_both_ran_python_are_both_merged(tmp_path: Path) -> None:
    """The caches of both differ, and so do those that the parent has by then."""
    for cache in (CACHED, "pkg/m.pyc", ".pytest_cache/v/lastfailed", "a/.mypy_cache/3.11/m.json"):
        for beginning in ({"pkg/m.py": "m", "a/x": "x"}, {"pkg/m.py": "m", "a/x": "x", cache: "0"}):
            directory = tmp_path / f"{len(os.listdir(tmp_path))}"
            pair = Pair.made(directory, beginning)
            write(pair.fork, {"pkg/m.py": "changed", "pkg/n.py": "n", cache: "fork"})
            write(pair.parent, {cache: "parent"})
            found = pair.merge()
            top = cache_of(cache)
            assert (found.conflicts, found.left_out) == ((), (top,))
            assert [change.path for change in found.changes] == ["pkg/m.py", "pkg/n.py"]
            assert (pair.parent / cache).read_text() == "parent"


def test_a_cache_is_not_told_unless_it_differs_and_is_merged_if_it_is_named(
    tmp_path: Path,
) -> None:
    pair = Pair.made(tmp_path, {"pkg/m.py": "m", CACHED: "0", "pkg/pycache": "no cache"})
    write(pair.fork, {"pkg/m.py": "changed", "pkg/pycache": "changed"})
    found = pair.merge()
    assert [change.path for change in found.changes] == ["pkg/m.py", "pkg/pycache"]
    assert found.left_out == ()
    write(pair.fork, {CACHED: "fork"})
    assert pair.merge(paths=("pkg",)).left_out == ("pkg/__pycache__",)
    assert pair.merge(paths=("pkg/__pycache__",)).left_out == ()
    assert (pair.parent / CACHED).read_text() == "fork"


def test_a_cache_goes_with_the_directory_that_it_is_in(tmp_path: Path) -> None:
    pair = Pair.made(tmp_path, {"a": "a", "pkg/m.py": "m", CACHED: "0"})
    shutil.rmtree(pair.fork / "pkg")
    write(pair.parent, {CACHED: "parent"})
    found = pair.merge()
    assert (found.conflicts, found.left_out) == ((), ())
    assert read(pair.parent) == {"a": "a"}


def test_a_cache_that_only_the_fork_has_is_not_brought(pair: Pair) -> None:
    write(pair.fork, {CACHED: "fork", "pkg/m.py": "m"})
    assert pair.merge().left_out == ("pkg/__pycache__",)
    assert sorted(os.listdir(pair.parent / "pkg")) == ["m.py"]


def test_a_name_that_is_no_text_is_merged(pair: Pair) -> None:
    name = os.fsdecode(b"\xff\xfe")
    write(pair.fork, {name: "f"})
    pair.merge()
    assert (pair.parent / name).read_text() == "f"
