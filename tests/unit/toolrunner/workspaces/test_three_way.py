"""Bringing two versions together: one path at a time, and line by line."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolrunner.filesystem.tree import Kind
from toolrunner.workspaces.merge.three_way import (
    ConflictKind,
    Merged,
    Step,
    Version,
    decide,
    merge_lines,
)

OLD, NEW, OTHER = (Version(Kind.FILE, text) for text in ("old", "new", "other"))
RUN = Version(Kind.FILE, "old", is_executable=True)
DIRECTORY, LINK = Version(Kind.DIRECTORY), Version(Kind.LINK, "old")
VERSIONS = (None, OLD, NEW, OTHER, RUN, DIRECTORY, LINK)

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=12).map(b"".join)


@pytest.mark.parametrize(
    ("base", "fork", "parent", "decision"),
    [
        (OLD, NEW, OLD, Step.TAKE),
        (OLD, None, OLD, Step.TAKE),
        (None, NEW, None, Step.TAKE),
        (OLD, DIRECTORY, OLD, Step.TAKE),
        (OLD, OLD, NEW, Step.NOTHING),
        (OLD, NEW, NEW, Step.NOTHING),
        (OLD, None, None, Step.NOTHING),
        (OLD, NEW, OTHER, Step.LINES),
        (OLD, RUN, NEW, Step.MODE),
        (None, RUN, OLD, ConflictKind.ADDED_TWICE),
        (OLD, NEW, RUN, Step.TAKE),
        (OLD, NEW, None, ConflictKind.DELETED_IN_PARENT),
        (OLD, None, NEW, ConflictKind.DELETED_IN_FORK),
        (None, NEW, OTHER, ConflictKind.ADDED_TWICE),
        (OLD, NEW, DIRECTORY, ConflictKind.TYPE),
        (OLD, LINK, NEW, ConflictKind.TYPE),
        (DIRECTORY, NEW, OTHER, ConflictKind.ADDED_TWICE),
    ],
)
def test_a_path_is_taken_kept_looked_into_or_reported(
    base: Version | None,
    fork: Version | None,
    parent: Version | None,
    decision: Step | ConflictKind,
) -> None:
    assert decide(base, fork, parent) == decision


def test_no_content_of_the_parent_is_overwritten_unseen() -> None:
    for base, fork, parent in product(VERSIONS, repeat=3):
        decision = decide(base, fork, parent)
        if decision is Step.TAKE and parent != base:
            assert (base and base.content, base and base.kind) == (
                parent and parent.content,
                parent and parent.kind,
            )
        if fork == base:
            assert decision is Step.NOTHING


@given(texts, texts)
def test_what_one_side_changed_is_the_result(base: bytes, changed: bytes) -> None:
    assert merge_lines(base, changed, base) == Merged(_lines(changed), 0)
    assert merge_lines(base, base, changed) == Merged(_lines(changed), 0)
    assert merge_lines(base, changed, changed) == Merged(_lines(changed), 0)


@given(texts, texts, texts)
def test_both_sides_conflict_in_the_same_places(base: bytes, fork: bytes, parent: bytes) -> None:
    one, other = merge_lines(base, fork, parent), merge_lines(base, parent, fork)
    assert one.conflicts == other.conflicts
    if not one.conflicts:
        assert one == other


@given(st.data())
def test_edits_of_different_lines_are_both_in_the_result(data: st.DataObject) -> None:
    size = data.draw(st.integers(4, 40))
    lines = [b"line %d\n" % number for number in range(size)]
    places = data.draw(st.sets(st.integers(0, size - 1), min_size=2, max_size=8))
    # Lines beside each other belong together for whoever reads the result.
    apart = [place for place in sorted(places) if place - 1 not in places]
    fork, parent, both = list(lines), list(lines), list(lines)
    for place in apart:
        edit = data.draw(st.sampled_from([[b"new %d\n" % place], [], [b"x\n", b"y %d\n" % place]]))
        side = fork if data.draw(st.booleans()) else parent
        side[place] = both[place] = b"".join(edit)
    merged = merge_lines(b"".join(lines), b"".join(fork), b"".join(parent))
    assert merged == Merged(_lines(b"".join(both)), 0)


def test_a_conflict_shows_both_versions() -> None:
    merged = merge_lines(b"a\nb\nc\n", b"a\nfork\nc\n", b"a\nparent\nc\n")
    marked = b"a\n<<<<<<< parent\nparent\n=======\nfork\n>>>>>>> fork\nc\n"
    assert merged == Merged(_lines(marked), 1)


def test_a_last_line_without_an_end_is_brought_in_as_it_is() -> None:
    assert merge_lines(b"a\nb\n", b"a\nb\nc", b"z\na\nb\n").lines == (b"z\n", b"a\n", b"b\n", b"c")


def test_a_long_text_with_many_equal_lines_is_merged_in_time() -> None:
    lines = [b"\n"] * 20_000
    fork, parent = [b"first\n", *lines], [*lines, b"last\n"]
    merged = merge_lines(b"".join(lines), b"".join(fork), b"".join(parent))
    assert (merged.conflicts, len(merged.lines)) == (0, 20_002)


def _lines(text: bytes) -> tuple[bytes, ...]:
    return tuple(text.splitlines(keepends=True))
