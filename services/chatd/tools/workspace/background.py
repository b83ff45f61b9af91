"""Rewrites commands that put themselves into the background to tracked background processes."""

import itertools
from dataclasses import dataclass
from typing import Final

from chatd.tools.workspace.shell import Token, TokenKind, Unreadable, tokens_of

#: They let a process outlive its shell, which a tracked process does without them.
WRAPPERS: Final = frozenset(("nohup", "setsid"))
DISOWN: Final = "disown"
#: Words with another meaning as a command name than after a wrapper.
RESERVED: Final = frozenset(
    (
        *("!", "{", "}", "[[", "case", "do", "done", "elif", "else", "esac", "fi", "for"),
        *("function", "if", "in", "select", "then", "time", "until", "while"),
    )
)

PROMOTED_NOTE: Final = (
    "The trailing & was taken off and the command runs as a tracked background process. "
    "Set run_in_background instead of writing &."
)
STRIPPED_NOTE: Final = (
    "The trailing & was taken off: with run_in_background the command is in the background already."
)
WRAPPER_NOTE: Final = (
    "nohup, setsid and disown were taken off: a background process outlives the call without them, "
    "and with them it could not be stopped."
)
INNER_NOTE: Final = (
    "A & inside the command starts something that nobody waits for and whose exit code is lost. "
    "Run it by a call of its own with run_in_background."
)
BASH_REDIRECT_NOTE: Final = (
    "sh reads &> as a & followed by >. To send both outputs to a file write >file 2>&1."
)


@dataclass(frozen=True, slots=True)
class Planned:
    """A command as it will be run."""

    command: str
    is_background: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Cut:
    """A range of the text to remove."""

    start: int
    end: int


def planned(command: str, *, is_background: bool) -> Planned:
    """Return how to run a command; text that cannot be parsed is passed to the shell unchanged."""
    try:
        tokens = tokens_of(command)
    except Unreadable:
        return Planned(command, is_background)
    ampersand = _trailing_ampersand(tokens)
    cuts = [] if ampersand is None else [ampersand]
    goes_behind = is_background or ampersand is not None
    wrappers = _wrappers(tokens) if goes_behind else []
    kept = [token for token in tokens if not _is_inside(token, cuts)]
    notes: list[str] = []
    if ampersand is not None:
        notes.append(STRIPPED_NOTE if is_background else PROMOTED_NOTE)
        if command[ampersand.start + 1 : ampersand.end].strip():
            notes.append(WRAPPER_NOTE)
    if wrappers and WRAPPER_NOTE not in notes:
        notes.append(WRAPPER_NOTE)
    if any(token.is_operator("&") for token in kept):
        notes.append(INNER_NOTE)
    if any(token.is_operator("&>") or token.is_operator("&>>") for token in kept):
        notes.append(BASH_REDIRECT_NOTE)
    text = _without(command, [*cuts, *wrappers])
    return Planned(text, goes_behind, tuple(notes))


def _trailing_ampersand(tokens: tuple[Token, ...]) -> _Cut | None:
    """Return the `&` that ends the command, together with a following `disown`."""
    told = [token for token in tokens if token.kind is not TokenKind.NEWLINE]
    end = len(told)
    while end and told[end - 1].kind is TokenKind.WORD:
        end -= 1
    behind = told[end:]
    if behind and behind[0].text != DISOWN:
        return None
    if end < 2 or not told[end - 1].is_operator("&") or told[end - 1].depth:
        return None
    before = told[end - 2]
    if before.kind is TokenKind.OPERATOR and before.text != ")":
        return None  # No command precedes it: the shell reports the error.
    last = behind[-1] if behind else told[end - 1]
    return _Cut(told[end - 1].start, last.end)


def _wrappers(tokens: tuple[Token, ...]) -> list[_Cut]:
    """Return the wrappers without options, each with the following whitespace."""
    cuts: list[_Cut] = []
    for token, following in itertools.pairwise(tokens):
        # A wrapper may be followed by another one.
        is_first = token.begins_command or (bool(cuts) and cuts[-1].end == token.start)
        if (
            is_first
            and token.depth == 0
            and token.text in WRAPPERS
            and following.kind is TokenKind.WORD
            and not following.text.startswith("-")
            and following.text not in RESERVED
            and "=" not in following.text
        ):
            cuts.append(_Cut(token.start, following.start))
    return cuts


def _is_inside(token: Token, cuts: list[_Cut]) -> bool:
    return any(cut.start <= token.start < cut.end for cut in cuts)


def _without(text: str, cuts: list[_Cut]) -> str:
    if not cuts:
        return text
    for cut in sorted(cuts, key=lambda each: each.start, reverse=True):
        behind = text[cut.end :]
        # A comment may begin right after an operator, but not right after a word.
        text = f"{text[: cut.start]}{' ' if behind.startswith('#') else ''}{behind}"
    stripped = text.rstrip(" \t\n")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    # Whitespace after a backslash belongs to the command.
    return (text if backslashes % 2 else stripped).lstrip(" \t\n")
