"""What was applied of a fork is kept with it: once, and within limits."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from toolrunner.workspaces.merge.applied import (
    APPLIED,
    MERGES_MAX,
    PATCHES_BYTES_MAX,
    PATHS_BYTES_MAX,
    PATHS_MAX,
    AppliedMerge,
    add_applied,
    applied_merge,
    applied_merges,
)
from toolrunner.workspaces.merge.patches import Patch

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
HALF = "x" * (PATCHES_BYTES_MAX // 2)


def test_merges_are_kept_once_with_the_newest_first(tmp_path: Path) -> None:
    first = applied_merge("1", AT, ["a", "n\udcff"], [Patch("a", "+1\n")])
    second = applied_merge("2", AT + timedelta(seconds=1), ["b"], [])
    for each in (first, second, first):
        add_applied(tmp_path, each)
    assert applied_merges(tmp_path) == (second, first)
    assert first.names == (b"a", b"n\xff")


def test_merges_are_bounded_and_the_oldest_lose_their_patches_first(tmp_path: Path) -> None:
    many = applied_merge("many", AT, [str(n) for n in range(PATHS_MAX + 2)], [])
    assert (len(many.names), many.omitted) == (PATHS_MAX, 2)
    long = applied_merge("long", AT, ["a", "b"], [Patch("a", HALF), Patch("b", HALF + "x")])
    assert [name for name, _ in long.patches] == [b"a"]
    for number in range(MERGES_MAX + 1):
        add_applied(tmp_path, applied_merge(str(number), AT, ["a"], [Patch("a", HALF)]))
    kept = applied_merges(tmp_path)
    assert [each.request_id for each in kept] == [str(n) for n in range(MERGES_MAX, 0, -1)]
    assert [bool(each.patches) for each in kept] == [True, True] + [False] * (MERGES_MAX - 2)


def test_long_paths_are_bounded_together_and_the_rest_is_counted_also_of_older_files(
    tmp_path: Path,
) -> None:
    length = 4000
    paths = [f"{number:04}".ljust(length, "x") for number in range(PATHS_MAX)]
    fit = PATHS_BYTES_MAX // length
    one = applied_merge("one", AT, [*paths, "beyond"], [])
    assert (len(one.names), one.omitted) == (fit, PATHS_MAX + 1 - fit)
    size = fit // 2 + 1
    for number in range(3):
        add_applied(tmp_path, applied_merge(str(number), AT, paths[:size], []))
    counts = [(len(each.names), each.omitted) for each in applied_merges(tmp_path)]
    assert counts == [(size, 0), (fit - size, 2 * size - fit), (0, size)]

    names = tuple(map(str.encode, paths))
    stored = [AppliedMerge(str(number), AT, names, 1, ()) for number in range(MERGES_MAX)]
    (tmp_path / APPLIED).write_bytes(msgspec.json.encode(stored))
    first, *others = applied_merges(tmp_path)

    assert (first.names, first.omitted) == (names[:fit], PATHS_MAX + 1 - fit)
    assert {(each.names, each.omitted) for each in others} == {((), PATHS_MAX + 1)}


def test_names_that_are_no_text_count_as_they_are_shown(tmp_path: Path) -> None:
    name = b"\xff" * 255
    stored = [AppliedMerge("1", AT, (name,) * PATHS_MAX, 0, ())]
    (tmp_path / APPLIED).write_bytes(msgspec.json.encode(stored))
    (merge,) = applied_merges(tmp_path)
    assert len(merge.names) == PATHS_BYTES_MAX // (3 * len(name))


def test_a_file_that_cannot_be_read_and_a_fork_that_is_gone_are_no_failures(tmp_path: Path) -> None:
    (tmp_path / APPLIED).write_bytes(b"[")
    assert applied_merges(tmp_path) == ()
    merge = applied_merge("1", AT, ["a"], [])
    add_applied(tmp_path, merge)
    add_applied(tmp_path / "gone", merge)
    assert applied_merges(tmp_path) == (merge,)
    assert applied_merges(tmp_path / "gone") == ()
