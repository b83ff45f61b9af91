"""Unified diffs of texts, with bounded time and size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

CONTEXT_LINES: Final = 3
DIFF_BYTES_MAX: Final = 64 * 1024
#: Beyond this many differences the middle counts as replaced as a whole.
DISTANCE_MAX: Final = 400
#: Texts with more differing lines, or compared loosely, take too much memory.
LINES_MAX: Final = 200_000
COMPARED_AT_ONCE: Final = 64 * 1024

#: Lines [a_start, a_end) became lines [b_start, b_end).
Hunk = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Diff:
    """The diff of two texts."""

    text: str = ""
    added_lines: int = 0
    deleted_lines: int = 0
    is_truncated: bool = False


def unified(path: str, before: str | None, after: str | None) -> Diff:
    """Return the diff; None stands for no file."""
    if before == after:
        return Diff()
    part = _differing(before or "", after or "")
    added, deleted = part.after.count("\n"), part.before.count("\n")
    if added + deleted > LINES_MAX:
        return Diff("", added, deleted, is_truncated=True)
    old, new = lines_of(part.before), lines_of(part.after)
    hunks = differences(old, new)
    head = [
        f"--- {'/dev/null' if before is None else f'a/{path}'}\n",
        f"+++ {'/dev/null' if after is None else f'b/{path}'}\n",
    ]
    text, is_truncated = _cut([*head, *_body(old, new, hunks, part.lines_before)])
    return Diff(
        text=text,
        added_lines=sum(hunk[3] - hunk[2] for hunk in hunks),
        deleted_lines=sum(hunk[1] - hunk[0] for hunk in hunks),
        is_truncated=is_truncated,
    )


@dataclass(frozen=True, slots=True)
class _Part:
    """The differing part of two texts, as whole lines with context."""

    before: str
    after: str
    lines_before: int


def _differing(before: str, after: str) -> _Part:
    """Strip the common beginning and end, so that only the rest is split into lines."""
    start = _common(before, after, 0, is_end=False)
    end = _common(before, after, start, is_end=True)
    for _ in range(CONTEXT_LINES + 1):
        start = before.rfind("\n", 0, max(0, start - 1)) + 1 if start else 0
    first_after = len(before) - end
    for _ in range(CONTEXT_LINES + 1):
        newline = before.find("\n", first_after)
        first_after = len(before) if newline < 0 else newline + 1
    end = len(before) - first_after
    return _Part(
        before[start:first_after], after[start : len(after) - end], before.count("\n", 0, start)
    )


def _common(a: str, b: str, taken: int, *, is_end: bool) -> int:
    """Return the length of the common prefix or suffix of two texts, without the taken part."""
    size, at, step = min(len(a), len(b)) - taken, 0, COMPARED_AT_ONCE
    while step:
        wanted = min(step, size - at)
        a_place, b_place = (len(a) - at - wanted, len(b) - at - wanted) if is_end else (at, at)
        is_same = a[a_place : a_place + wanted] == b[b_place : b_place + wanted]
        if wanted and is_same:
            at += wanted
        else:
            step //= 2
    return at


def lines_of(text: str) -> list[str]:
    """Return the lines with their ends; only LF ends a line."""
    lines = text.split("\n")
    ended = [f"{line}\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def differences(old: Sequence[str], new: Sequence[str]) -> list[Hunk]:
    """Return the differing ranges, in order."""
    start = 0
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = old[start : len(old) - end], new[start : len(new) - end]
    if not a and not b:
        return []
    pairs = _shared(a, b) if a and b else []
    if pairs is None:
        return [(start, start + len(a), start, start + len(b))]
    hunks = []
    at, to = 0, 0
    for x, y in [*pairs, (len(a), len(b))]:
        if x > at or y > to:
            hunks.append((start + at, start + x, start + to, start + y))
        at, to = x + 1, y + 1
    return hunks


def _shared(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return the pairs of equal lines on a shortest path (Myers), or None if it is too long."""
    furthest = {1: 0}
    history: list[dict[int, int]] = []
    for distance in range(min(len(a) + len(b), DISTANCE_MAX) + 1):
        history.append(dict(furthest))
        for k in range(-distance, distance + 1, 2):
            is_down = k == -distance or (
                k != distance and furthest.get(k - 1, -1) < furthest.get(k + 1, -1)
            )
            x = furthest[k + 1] if is_down else furthest[k - 1] + 1
            y = x - k
            while 0 <= y < len(b) and x < len(a) and a[x] == b[y]:
                x, y = x + 1, y + 1
            furthest[k] = x
            if x >= len(a) and y >= len(b):
                return _walked_back(history, len(a), len(b))
    return None


def _walked_back(history: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for distance in range(len(history) - 1, -1, -1):
        furthest = history[distance]
        k = x - y
        is_down = k == -distance or (
            k != distance and furthest.get(k - 1, -1) < furthest.get(k + 1, -1)
        )
        before_k = k + 1 if is_down else k - 1
        before_x = furthest[before_k] if distance else 0
        before_y = before_x - before_k if distance else 0
        while x > before_x and y > before_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = before_x, before_y
    return pairs[::-1]


def _body(old: list[str], new: list[str], hunks: list[Hunk], lines_before: int) -> list[str]:
    body: list[str] = []
    for group in _grouped(hunks):
        first, last = group[0], group[-1]
        lead = min(first[0], CONTEXT_LINES)
        tail = min(len(old) - last[1], CONTEXT_LINES)
        old_count = last[1] + tail - (first[0] - lead)
        new_count = last[3] + tail - (first[2] - lead)
        old_span = _span(lines_before + first[0] - lead, old_count)
        new_span = _span(lines_before + first[2] - lead, new_count)
        body.append(f"@@ -{old_span} +{new_span} @@\n")
        at = first[0] - lead
        for a_start, a_end, b_start, b_end in group:
            body += [_marked(" ", line) for line in old[at:a_start]]
            body += [_marked("-", line) for line in old[a_start:a_end]]
            body += [_marked("+", line) for line in new[b_start:b_end]]
            at = a_end
        body += [_marked(" ", line) for line in old[at : at + tail]]
    return body


def _grouped(hunks: list[Hunk]) -> list[list[Hunk]]:
    groups: list[list[Hunk]] = []
    for hunk in hunks:
        if groups and hunk[0] - groups[-1][-1][1] <= 2 * CONTEXT_LINES:
            groups[-1].append(hunk)
        else:
            groups.append([hunk])
    return groups


def _span(start: int, count: int) -> str:
    first = start + 1 if count else start
    return str(first) if count == 1 else f"{first},{count}"


def _marked(mark: str, line: str) -> str:
    text = line.encode(errors="surrogateescape").decode(errors="replace")
    return (
        f"{mark}{text}" if line.endswith("\n") else f"{mark}{text}\n\\ No newline at end of file\n"
    )


def _cut(lines: list[str]) -> tuple[str, bool]:
    size = 0
    kept: list[str] = []
    for line in lines:
        size += len(line.encode())
        if size > DIFF_BYTES_MAX:
            return "".join(kept), True
        kept.append(line)
    return "".join(kept), False
