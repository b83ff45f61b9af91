"""Three-way merge: of the versions of one path, and of the lines of one text."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Final

from toolrunner.filesystem.tree import Kind

#: Longer texts are compared without their most frequent lines, which finds fewer matches, faster.
EXACT_LINES_MAX: Final = 2000


class ConflictKind(StrEnum):
    """The kind of a conflict; names are those of the proto."""

    CONTENT = "content"
    DELETED_IN_PARENT = "deleted_in_parent"
    DELETED_IN_FORK = "deleted_in_fork"
    ADDED_TWICE = "added_twice"
    BINARY = "binary"
    TYPE = "type"


@dataclass(frozen=True, slots=True)
class Version:
    """The version of a path on one side.

    Attributes:
        kind: File, directory or link.
        content: Equal if two files or links are equal; empty for a directory.
        is_executable: Whether a file is executable.
    """

    kind: Kind
    content: str = ""
    is_executable: bool = False


class Step(StrEnum):
    """The action for a path that does not conflict so far."""

    NOTHING = "nothing"
    TAKE = "take"  # The fork's version, or its absence.
    MODE = "mode"  # The parent's content with the fork's mode.
    LINES = "lines"  # Both changed a file: merge its lines.


def decide(
    base: Version | None, fork: Version | None, parent: Version | None
) -> Step | ConflictKind:
    """Return the action for a path, given its base and both current versions."""
    if fork in (base, parent):
        return Step.NOTHING
    if parent == base:
        return Step.TAKE
    if fork is None:
        return ConflictKind.DELETED_IN_FORK
    if parent is None:
        return ConflictKind.DELETED_IN_PARENT
    if fork.kind is not parent.kind:
        return ConflictKind.TYPE
    if fork.kind is not Kind.FILE:
        return ConflictKind.ADDED_TWICE if base is None else ConflictKind.CONTENT
    if fork.content == parent.content and base is not None and base.kind is Kind.FILE:
        return Step.MODE
    if base is None or base.kind is not Kind.FILE:
        return ConflictKind.ADDED_TWICE
    if base.content == fork.content:
        return Step.MODE
    if base.content == parent.content:
        # The parent changed the mode only, and the fork may have changed it too.
        return Step.TAKE
    return Step.LINES


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged lines of both sides.

    Attributes:
        lines: The result; conflicting hunks contain both sides between markers.
        conflicts: The number of conflicting hunks.
    """

    lines: tuple[bytes, ...]
    conflicts: int


def merge_lines(base: bytes, fork: bytes, parent: bytes) -> Merged:
    """Merge two changed versions of a text by lines.

    Changes of the same line, or of adjacent lines, conflict unless they are equal.
    """
    old, ours, theirs = (text.splitlines(keepends=True) for text in (base, fork, parent))
    merged: list[bytes] = []
    conflicts = 0
    at = at_ours = at_theirs = 0
    for start, start_ours, start_theirs, size in _common(old, ours, theirs):
        mine = ours[at_ours:start_ours]
        others = theirs[at_theirs:start_theirs]
        before = old[at:start]
        if mine == others or others == before:
            merged += mine
        elif mine == before:
            merged += others
        else:
            conflicts += 1
            merged += _marked(mine, others)
        merged += old[start : start + size]
        at, at_ours, at_theirs = start + size, start_ours + size, start_theirs + size
    return Merged(tuple(merged), conflicts)


def _common(
    old: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]
) -> list[tuple[int, int, int, int]]:
    """Return the runs of lines that all three have: their positions in each, and the length.

    The last run is the end of all three, without lines.
    """
    in_ours, in_theirs = _matches(old, ours), _matches(old, theirs)
    runs: list[tuple[int, int, int, int]] = []
    mine = others = 0
    while mine < len(in_ours) and others < len(in_theirs):
        at_a, at_ours, size_a = in_ours[mine]
        at_b, at_theirs, size_b = in_theirs[others]
        start, stop = max(at_a, at_b), min(at_a + size_a, at_b + size_b)
        if start < stop:
            runs.append((start, at_ours + start - at_a, at_theirs + start - at_b, stop - start))
        if at_a + size_a < at_b + size_b:
            mine += 1
        else:
            others += 1
    return [*runs, (len(old), len(ours), len(theirs), 0)]


def _matches(old: Sequence[bytes], new: Sequence[bytes]) -> list[tuple[int, int, int]]:
    """Return runs of equal lines, in order: position in the old, position in the new, length."""
    shared = min(len(old), len(new))
    head = 0
    while head < shared and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shared - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    is_long = max(len(middle_old), len(middle_new)) > EXACT_LINES_MAX
    matcher = SequenceMatcher(None, middle_old, middle_new, autojunk=is_long)
    middle = [(a + head, b + head, size) for a, b, size in matcher.get_matching_blocks() if size]
    ends = (len(old) - tail, len(new) - tail, tail)
    return [*([(0, 0, head)] if head else []), *middle, *([ends] if tail else [])]


def _marked(ours: Sequence[bytes], theirs: Sequence[bytes]) -> list[bytes]:
    return [
        b"<<<<<<< parent\n",
        *_ended(theirs),
        b"=======\n",
        *_ended(ours),
        b">>>>>>> fork\n",
    ]


def _ended(lines: Sequence[bytes]) -> list[bytes]:
    return [line if line.endswith(b"\n") else line + b"\n" for line in lines]
