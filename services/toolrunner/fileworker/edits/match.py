"""Location of an edit: exact match first, then with looser comparisons, never by similarity."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from toolrunner.fileworker.edits.diff import LINES_MAX, lines_of


class Match(StrEnum):
    """How exactly a text was found; names are those of the proto."""

    EXACT = "exact"
    TRAILING_BLANKS = "trailing_blanks"
    INDENTATION = "indentation"
    FOLDED = "folded"


@dataclass(frozen=True, slots=True)
class Span:
    """A range of a text: characters [start, end), and its first line, from 0."""

    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class Found:
    """The locations of an old text.

    Attributes:
        match: How exactly it was found.
        spans: The locations, in order; several may overlap.
        is_whole_lines: Whether the locations are whole lines rather than characters.
    """

    match: Match
    spans: tuple[Span, ...]
    is_whole_lines: bool


#: The search stops after this many locations.
PLACES_MAX: Final = 100_000

_BLANKS: Final = " \t\r\n"
_FOLDED: Final = {
    **dict.fromkeys(map(ord, "‐‑‒–—―−"), "-"),  # noqa: RUF001 (the look-alikes are the point)
    **dict.fromkeys(map(ord, "‘’‚‛′"), "'"),  # noqa: RUF001 (the look-alikes are the point)
    **dict.fromkeys(map(ord, "“”„‟″"), '"'),
    **dict.fromkeys((0x00A0, *range(0x2002, 0x200B), 0x202F, 0x205F, 0x3000), " "),
}


def folded(text: str) -> str:
    """Return a text with look-alike punctuation and blanks replaced by ASCII."""
    return text.translate(_FOLDED)


_LOOSER: Final[tuple[tuple[Match, Callable[[str], str]], ...]] = (
    (Match.TRAILING_BLANKS, lambda line: line.rstrip(_BLANKS)),
    (Match.INDENTATION, lambda line: line.strip(_BLANKS)),
    (Match.FOLDED, lambda line: folded(line).strip(_BLANKS)),
)


def dominant_ending(text: str) -> str:
    """Return the most frequent line ending."""
    crlf = text.count("\r\n")
    return "\r\n" if crlf > text.count("\n") - crlf else "\n"


def ending_style(text: str) -> str:
    """Return the line ending of all lines, `mixed`, or empty if there is none."""
    crlf, all_endings = text.count("\r\n"), text.count("\n")
    if all_endings == 0:
        return ""
    if crlf in (0, all_endings):
        return "\r\n" if crlf else "\n"
    return "mixed"


def rewrites_endings(old: str, new: str) -> bool:
    """Return whether an edit changes the line endings themselves."""
    styles = {ending_style(old), ending_style(new)}
    return styles == {"\n", "\r\n"}


def find(text: str, old: str, new: str) -> Found | None:
    """Return the locations of `old`, found as exactly as possible, or None."""
    spans = _occurrences(text, old)
    if spans:
        return Found(Match.EXACT, spans, is_whole_lines=False)
    if rewrites_endings(old, new):
        return None
    ending = dominant_ending(text)
    if ending_style(old) not in ("", "mixed", ending):
        other = old.replace("\r\n", "\n").replace("\n", ending)
        spans = _occurrences(text, other)
        if spans:
            return Found(Match.TRAILING_BLANKS, spans, is_whole_lines=False)
    return _find_lines(text, old)


def _occurrences(text: str, old: str) -> tuple[Span, ...]:
    spans: list[Span] = []
    at, line, counted = text.find(old), 0, 0
    while at >= 0 and len(spans) <= PLACES_MAX:
        line += text.count("\n", counted, at)
        counted = at
        spans.append(Span(at, at + len(old), line))
        at = text.find(old, at + 1)
    return tuple(spans)


def _find_lines(text: str, old: str) -> Found | None:
    if text.count("\n") > LINES_MAX:
        return None
    lines, wanted = lines_of(text), lines_of(old)
    if not any(line.strip(_BLANKS) for line in wanted):
        return None
    for match, key in _LOOSER:
        places = _places([key(line) for line in lines], [key(line) for line in wanted])
        if places:
            offsets = _offsets(lines)
            spans = tuple(
                Span(offsets[at], _end(lines, offsets, at + len(wanted), old), at) for at in places
            )
            return Found(match, spans, is_whole_lines=True)
    return None


def _places(keys: Sequence[str], wanted: Sequence[str]) -> list[int]:
    return [
        at
        for at in range(len(keys) - len(wanted) + 1)
        if keys[at] == wanted[0] and keys[at : at + len(wanted)] == wanted
    ]


def _offsets(lines: Sequence[str]) -> list[int]:
    offsets = [0]
    for line in lines:
        offsets.append(offsets[-1] + len(line))
    return offsets


def _end(lines: Sequence[str], offsets: Sequence[int], after: int, old: str) -> int:
    """Return the end of a location: a text without a final newline keeps that of the file."""
    if old.endswith("\n"):
        return offsets[after]
    last = lines[after - 1]
    return offsets[after] - (len(last) - len(last.rstrip("\r\n")))
