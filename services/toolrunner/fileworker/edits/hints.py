"""Hints about an old text that was not found; suggestions, never replacements."""

import difflib
import itertools
from collections.abc import Sequence
from typing import Final

HINTS_MAX: Final = 3
HINT_CHARACTERS_MAX: Final = 500
PLACES_MAX: Final = 5
SWAPPED_PLACES_MAX: Final = 100
LIKENESS_MIN: Final = 0.6
#: Comparing every line of a huge file would block other requests.
COMPARED_LINES_MAX: Final = 5000
COUNTED_CHARACTERS_MAX: Final = 1024 * 1024
COMPARED_CHARACTERS_MAX: Final = 500


def hints_for(text: str, old: str, new: str) -> tuple[str, ...]:
    """Return why a text may not have been found, the most likely first."""
    if len(text) + len(old) > COUNTED_CHARACTERS_MAX:
        return _cut(_swapped(text, new))
    lines = [line.rstrip("\r") for line in text.split("\n")]
    miscounted = _miscounted(lines, old)
    if miscounted:
        return _cut(miscounted)
    swapped = _swapped(text, new)
    return _cut([*swapped, *_nearest(lines, old)])


def _cut(hints: Sequence[str]) -> tuple[str, ...]:
    return tuple(hint[:HINT_CHARACTERS_MAX] for hint in hints[:HINTS_MAX])


def line_numbers(places: Sequence[int]) -> str:
    """Return zero-based line numbers as text, counted from 1."""
    shown = ", ".join(str(place + 1) for place in places[:PLACES_MAX])
    return f"{shown} and {len(places) - PLACES_MAX} more" if len(places) > PLACES_MAX else shown


def _runs(line: str) -> list[tuple[str, int]]:
    return [(character, len(list(run))) for character, run in itertools.groupby(line)]


def _miscounted(lines: Sequence[str], old: str) -> list[str]:
    """Find lines that differ only in how often one character is repeated."""
    by_shape: dict[tuple[str, ...], list[int]] = {}
    for at, line in enumerate(lines):
        by_shape.setdefault(tuple(character for character, _ in _runs(line)), []).append(at)
    hints = []
    for line in filter(str.strip, old.splitlines()):
        runs = _runs(line)
        places = by_shape.get(tuple(character for character, _ in runs), [])
        differing: dict[tuple[str, int, int], list[int]] = {}
        for at in places:
            differences = [
                (wanted, there)
                for wanted, there in zip(runs, _runs(lines[at]), strict=True)
                if wanted != there
            ]
            if len(differences) == 1 and not differences[0][0][0].isspace():
                (character, wanted_count), (_, count) = differences[0]
                differing.setdefault((character, wanted_count, count), []).append(at)
        for (character, wanted_count, count), found in differing.items():
            hints.append(
                f"old_text has {wanted_count} times {character!r} (U+{ord(character):04X}) where "
                f"the file has {count}, on line {line_numbers(found)}"
            )
    return hints


def _swapped(text: str, new: str) -> list[str]:
    if not new.strip() or new not in text:
        return []
    places: list[int] = []
    at, line, counted = text.find(new), 0, 0
    while at >= 0 and len(places) < SWAPPED_PLACES_MAX:
        line += text.count("\n", counted, at)
        counted = at
        places.append(line)
        at = text.find(new, at + len(new))
    where = line_numbers(places)
    return [f"new_text is in the file already, on line {where}; were old and new text swapped?"]


def _nearest(lines: Sequence[str], old: str) -> list[str]:
    wanted = [line.strip() for line in old.splitlines() if line.strip()]
    if not wanted or len(lines) > COMPARED_LINES_MAX:
        return []
    key = max(wanted, key=len)[:COMPARED_CHARACTERS_MAX]
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(key)
    best, best_at = LIKENESS_MIN, -1
    for at, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:COMPARED_CHARACTERS_MAX])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            ratio = matcher.ratio()
            if ratio > best:
                best, best_at = ratio, at
    if best_at < 0:
        return []
    return [f"line {best_at + 1} is nearest: {lines[best_at]!r}"]
