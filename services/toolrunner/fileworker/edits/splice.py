"""Insertion of a new text at the location of an old one; unchanged parts keep the file's format."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from toolrunner.fileworker.edits.diff import differences, lines_of
from toolrunner.fileworker.edits.match import (
    Found,
    Span,
    dominant_ending,
    ending_style,
    rewrites_endings,
)

UNIT_DEFAULT: Final = "    "
UNIT_SPACES_MAX: Final = 8
_LINE: Final = re.compile(r"([ \t]*)(.*?)([ \t]*)(\r?\n)?", re.S)


@dataclass(frozen=True, slots=True)
class Line:
    """The parts of a line."""

    indent: str
    body: str
    trailing: str
    end: str

    @classmethod
    def parse(cls, text: str) -> "Line":
        """Split a line into its parts."""
        parts = _LINE.fullmatch(text)
        assert parts is not None, "the pattern matches every line"
        indent, body, trailing, end = parts.groups(default="")
        return cls(indent, body, trailing, end)


def replaced(text: str, old: str, new: str, found: Found, spans: Sequence[Span]) -> str:
    """Return `text` with `new` at the given locations of `old`."""
    pieces, at = [], 0
    for span in spans:
        pieces.append(text[at : span.start])
        if found.is_whole_lines:
            pieces.append(spliced(text, text[span.start : span.end], old, new))
        else:
            pieces.append(_with_ending(text, text[span.start : span.end], old, new))
        at = span.end
    return "".join([*pieces, text[at:]])


def _with_ending(text: str, place: str, old: str, new: str) -> str:
    """Give a new text the line ending of the location, unless it changes the endings."""
    if rewrites_endings(old, new) or ending_style(new) in ("", "mixed"):
        return new
    ending = ending_style(place)
    if ending in ("", "mixed"):
        ending = dominant_ending(text)
    return new.replace("\r\n", "\n").replace("\n", ending)


def spliced(text: str, place: str, old: str, new: str) -> str:
    """Return whole lines of a text with the change from `old` to `new` applied."""
    there = [Line.parse(line) for line in lines_of(place)]
    old_lines = [Line.parse(line) for line in lines_of(old)]
    new_lines = [Line.parse(line) for line in lines_of(new)]
    if len(there) < len(old_lines):
        # The last line of the location is empty, and its line ending is kept.
        there.append(Line.parse(""))
    indents = _Indents.between(old_lines, new_lines, there, text)
    ending = dominant_ending(text)
    out: list[tuple[str, str]] = []
    at = 0
    keys_old = [line.indent + line.body + line.trailing for line in old_lines]
    keys_new = [line.indent + line.body + line.trailing for line in new_lines]
    hunks = differences(keys_old, keys_new)
    for a_start, a_end, b_start, b_end in [*hunks, (len(old_lines), len(old_lines), 0, 0)]:
        out += [
            (line.indent + line.body + line.trailing, line.end or ending)
            for line in there[at:a_start]
        ]
        for offset, line in enumerate(new_lines[b_start:b_end]):
            pair = a_start + offset
            if pair < a_end:
                out.append((_paired(line, old_lines[pair], there[pair], indents, pair), ending))
            else:
                near = max(min(a_end, len(there)) - 1, 0)
                out.append((indents.translated(line, near) + line.body + line.trailing, ending))
        at = a_end
    return _joined(out, old, new, has_end=bool(there and there[-1].end))


def _paired(line: Line, old: Line, there: Line, indents: "_Indents", place: int) -> str:
    same_indent = line.indent == old.indent
    indent = there.indent if same_indent else indents.translated(line, place)
    trailing = there.trailing if line.trailing == old.trailing else line.trailing
    return indent + line.body + trailing


def _joined(out: list[tuple[str, str]], old: str, new: str, *, has_end: bool) -> str:
    keeps_end = new.endswith("\n") and (has_end or not old.endswith("\n"))
    text = "".join(line + end for line, end in out[:-1])
    if not out:
        return text
    return text + out[-1][0] + (out[-1][1] if keeps_end else "")


@dataclass(frozen=True, slots=True)
class _Indents:
    """The mapping from the indentation of an edit to that of the file."""

    known: dict[str, str]
    pairs: tuple[tuple[str, str], ...]  # Of the edit and of the file, line by line.
    edit_unit: str
    file_unit: str

    @classmethod
    def between(
        cls, old_lines: Sequence[Line], new_lines: Sequence[Line], there: Sequence[Line], text: str
    ) -> "_Indents":
        pairs = tuple((old.indent, line.indent) for old, line in zip(old_lines, there, strict=True))
        known = {
            old.indent: pair[1] for old, pair in zip(old_lines, pairs, strict=True) if old.body
        }
        return cls(
            known=known,
            pairs=pairs,
            edit_unit=unit_of(line.indent for line in (*old_lines, *new_lines) if line.body),
            file_unit=unit_of(_indents_of(text)),
        )

    def translated(self, line: Line, near: int) -> str:
        if not line.body:
            return line.indent
        if line.indent in self.known:
            return self.known[line.indent]
        old_indent, file_indent = self.pairs[near]
        steps = _levels(line.indent, self.edit_unit) - _levels(old_indent, self.edit_unit)
        if steps != int(steps):
            return file_indent
        if steps >= 0:
            return file_indent + self.file_unit * int(steps)
        return file_indent[: max(0, len(file_indent) + int(steps) * len(self.file_unit))]


def unit_of(indents: Iterable[str]) -> str:
    """Return one level of indentation: a tab, or as many spaces as all of them share."""
    present = [indent for indent in indents if indent]
    tabs = sum("\t" in indent for indent in present)
    if tabs * 2 > len(present):
        return "\t"
    shared = math.gcd(*(len(indent) for indent in present if "\t" not in indent))
    return " " * shared if 1 < shared <= UNIT_SPACES_MAX else UNIT_DEFAULT


def _indents_of(text: str) -> Iterable[str]:
    for line in text.split("\n"):
        body = line.lstrip(" \t")
        if body.strip():
            yield line[: len(line) - len(body)]


def _levels(indent: str, unit: str) -> float:
    if "\t" in indent:
        return indent.count("\t")
    return len(indent) / (len(unit) if unit != "\t" else len(UNIT_DEFAULT))
