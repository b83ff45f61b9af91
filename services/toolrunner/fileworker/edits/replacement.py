"""Replacements in one text: each is applied to the result of the previous ones.

Every replacement that cannot be made is returned, not only the first.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from toolrunner.fileworker.edits.hints import hints_for, line_numbers
from toolrunner.fileworker.edits.match import PLACES_MAX, Found, Span, find
from toolrunner.fileworker.edits.splice import replaced
from toolrunner.fileworker.values import AppliedEdit, ProblemKind, TextEdit

NO_FILE_EDIT: Final = -1
#: The maximum that one edit may insert.
CHARACTERS_MAX: Final = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class BadEdit:
    """Why one replacement cannot be made."""

    index: int
    kind: ProblemKind
    message: str
    count: int = 0
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Edited:
    """A text after its replacements, and those that could not be made."""

    text: str
    applied: tuple[AppliedEdit, ...]
    bad: tuple[BadEdit, ...]


def edited(text: str, edits: Sequence[TextEdit]) -> Edited:
    """Apply replacements to a text."""
    applied, bad = [], []
    for index, edit in enumerate(edits):
        outcome = _edited_once(text, index, edit)
        if isinstance(outcome, BadEdit):
            bad.append(outcome)
        else:
            text, done = outcome
            applied.append(done)
    return Edited(text, tuple(applied), tuple(bad))


def _edited_once(text: str, index: int, edit: TextEdit) -> tuple[str, AppliedEdit] | BadEdit:
    if not edit.old_text:
        message = "old_text is empty; give the text to replace, or write the whole file"
        return BadEdit(index, ProblemKind.MALFORMED, message)
    found = find(text, edit.old_text, edit.new_text)
    if found is None:
        message = "old_text is not in the file; read it again and copy the text exactly"
        hints = hints_for(text, edit.old_text, edit.new_text)
        return BadEdit(index, ProblemKind.NO_MATCH, message, hints=hints)
    if len(found.spans) > 1 and not edit.replace_all:
        return _ambiguous(index, found)
    spans = _apart(found.spans)
    is_too_much = len(spans) * len(edit.new_text) > CHARACTERS_MAX
    if len(found.spans) > PLACES_MAX or is_too_much:
        message = "there are too many places, or too much to put there; use a command for it"
        return BadEdit(index, ProblemKind.MALFORMED, message, count=len(found.spans))
    after = replaced(text, edit.old_text, edit.new_text, found, spans)
    return after, AppliedEdit(index, found.match, len(spans), spans[0].line + 1)


def _ambiguous(index: int, found: Found) -> BadEdit:
    lines = [span.line for span in found.spans]
    message = (
        f"old_text is in {len(lines)} places, on lines {line_numbers(lines)}; add lines around it "
        "until it is in one place only, or set replace_all"
    )
    return BadEdit(index, ProblemKind.AMBIGUOUS, message, count=len(lines))


def _apart(spans: Sequence[Span]) -> list[Span]:
    """Drop locations that overlap a previous one."""
    apart: list[Span] = []
    for span in spans:
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return apart
