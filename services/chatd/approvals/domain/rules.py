"""Approval rules: values, validation, and which calls they match."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, StrEnum, auto
from functools import lru_cache
from typing import Final

from chatd.approvals.domain.programs import (
    STANDARD_DIRECTORIES,
    Program,
    base_name,
    programs_in,
)
from chatd.approvals.domain.shell import SimpleCommand, simple_commands
from chatd.approvals.domain.shell_words import Unreadable, Word, WordKind
from chatd.content.domain.messages import ChatMode

RULES_MAX: Final = 100


class Effect(StrEnum):
    """What a rule does with a call, from the mildest to the strictest."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """Its place in the order."""
        return tuple(Effect).index(self)


class ScopeKind(StrEnum):
    """Whose calls a rule is for."""

    INSTALLATION = "installation"
    USER = "user"
    CHAT = "chat"  # A chat and the chats below it.


@dataclass(frozen=True, slots=True)
class Scope:
    """The installation, one user or one tree of chats; the id is that of the user or root chat."""

    kind: ScopeKind
    id: str = ""


INSTALLATION: Final = Scope(ScopeKind.INSTALLATION)


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; a field that is empty matches everything.

    Attributes:
        tool: The tool's name, in which `*` stands for any text.
        server_id: The MCP server of the tool.
        modes: The modes of the chat.
        command: A shell command for tools that run one, in which `*` stands for any text and a
            last word `*` for any arguments.
        arguments: Patterns of arguments by their names, at any depth.
        reason: Shown to the person who is asked, and to the model.
        is_rememberable: Whether an approval for the chat settles an installation's `ask`.
        is_for_tainted: Whether an `allow` also holds after content from outside entered the chat.
        digest: The one call that a remembered approval is for; empty for other rules.
    """

    id: str
    scope: Scope
    effect: Effect
    tool: str = ""
    server_id: str = ""
    modes: frozenset[ChatMode] = frozenset()
    command: str = ""
    arguments: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    is_rememberable: bool = False
    is_for_tainted: bool = False
    digest: str = ""
    version: int = 1
    created_at: datetime | None = None

    @property
    def specificity(self) -> tuple[int, ...]:
        """How narrow the rule is; of two in one scope the greater decides."""
        return (
            bool(self.command),
            len(self.command.replace("*", "")),
            len(self.arguments),
            sum(len(pattern.replace("*", "")) for pattern in self.arguments.values()),
            bool(self.tool) and "*" not in self.tool,
            len(self.tool.replace("*", "")),
            bool(self.server_id),
            bool(self.modes),
        )


class Match(Enum):
    """Whether a rule is for a call."""

    NO = auto()
    MAYBE = auto()  # Words that are not known decide it.
    YES = auto()


def command_problem(command: str) -> str:
    """Return why a text is no pattern of a command; empty if it is one."""
    try:
        _pattern(command)
    except Unreadable as error:
        return f"is not one shell command: {error}"
    return ""


def match_call(rule: Rule, *, tool: str, server_id: str, mode: ChatMode, arguments: object) -> bool:
    """Return whether everything but the command of a rule matches a call."""
    return (
        (not rule.tool or is_like(rule.tool, tool))
        and rule.server_id in ("", server_id)
        and (not rule.modes or mode in rule.modes)
        and all(
            _matches_argument(pattern, tuple(_values(arguments, name)), rule.effect)
            for name, pattern in rule.arguments.items()
        )
    )


def match_program(rule: Rule, program: Program | None) -> Match:
    """Return whether the command of a rule matches a program; None is a call without one."""
    if not rule.command:
        return Match.YES
    if program is None:
        return Match.NO
    if program.is_opaque:
        return Match.MAYBE
    try:
        pattern = _pattern(rule.command)
    except Unreadable:
        # It was stored when the parser still accepted it.
        return Match.MAYBE
    if not program.words:
        return Match.NO
    if program.is_indirect:
        return Match.MAYBE if _is_in_arguments(pattern.words, program) else Match.NO
    if rule.effect is not Effect.ALLOW:
        return _match_words(pattern.words, program.words, _is_named_loosely)
    is_plain = not program.writes_file and set(program.assignments) <= set(pattern.assignments)
    return _match_words(pattern.words, program.words, _is_named_strictly) if is_plain else Match.NO


def _is_in_arguments(pattern: tuple[Word, ...], program: Program) -> bool:
    """Return whether an unknown program may run a pattern: arguments or variables name it."""
    if not pattern[0].text.strip("*"):
        return False
    if _is_in_words(pattern, program.words):
        return True
    return any(
        _match_words(pattern, each.words, _is_named_loosely) is not Match.NO
        or (each.is_opaque and _is_in_words(pattern, each.words))
        for each in programs_in(program)
        if each.words
    )


def _is_in_words(pattern: tuple[Word, ...], words: tuple[Word, ...]) -> bool:
    return any(
        _match_words(pattern, words[place:], _is_named_loosely) is not Match.NO
        for place in range(1, len(words))
        if _is_named_loosely(pattern[0].text, words[place])
    )


def is_like(pattern: str, text: str) -> bool:
    """Return whether a text has the form of a pattern, in which `*` stands for any text."""
    if "*" not in pattern:
        return text == pattern
    first, *others = pattern.split("*")
    *middle, last = others
    if not text.startswith(first) or len(text) < len(first) + len(last):
        return False
    if not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        found = text.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True


@lru_cache(maxsize=1024)
def _pattern(command: str) -> SimpleCommand:
    found = simple_commands(command)
    if len(found) != 1:
        raise Unreadable("it has several commands or none")
    (pattern,) = found
    if pattern.writes_file or not pattern.words:
        raise Unreadable("it has a redirection or no name")
    if any(word.kind is WordKind.DYNAMIC for word in pattern.words):
        raise Unreadable("it has an expansion")
    return pattern


def _is_named_loosely(pattern: str, word: Word) -> bool:
    return is_like(pattern, word.text) or is_like(pattern, base_name(word))


def _is_named_strictly(pattern: str, word: Word) -> bool:
    """Return whether a program has a name; one in a directory of the workspace has another."""
    if is_like(pattern, word.text) and ("/" in pattern) == ("/" in word.text):
        return True
    directory = word.text.rpartition("/")[0]
    return directory in STANDARD_DIRECTORIES and is_like(pattern, base_name(word))


def _match_words(
    pattern: tuple[Word, ...], words: tuple[Word, ...], is_named: Callable[[str, Word], bool]
) -> Match:
    is_open = len(pattern) > 1 and pattern[-1].text == "*"
    wanted = [word.text for word in (pattern[:-1] if is_open else pattern)]
    for place, text in enumerate(wanted):
        if place >= len(words):
            return Match.NO
        word = words[place]
        if place == 0:
            if not is_named(text, word):
                return Match.NO
        elif word.kind is WordKind.LITERAL:
            if not is_like(text, word.text):
                return Match.NO
        elif word.kind is WordKind.DYNAMIC or word.text != text:
            # It may become any number of words.
            return Match.MAYBE
    rest = words[len(wanted) :]
    if is_open or not rest:
        return Match.YES
    return Match.MAYBE if all(not word.is_literal for word in rest) else Match.NO


def _matches_argument(pattern: str, values: tuple[str, ...], effect: Effect) -> bool:
    """Return whether values match: all of them for an `allow`, else one of them.

    A path with `..` counts as written and as what it leads to, whichever is stricter.
    """
    if effect is Effect.ALLOW:
        return bool(values) and all(
            is_like(pattern, value) and is_like(pattern, without_parents(value)) for value in values
        )
    return any(
        is_like(pattern, value) or is_like(pattern, without_parents(value)) for value in values
    )


def without_parents(path: str) -> str:
    """Return a path without the segments `.` and `..`; other texts stay as they are."""
    segments = path.split("/")
    if not {".", ".."} & set(segments):
        return path
    kept: list[str] = []
    for segment in segments:
        if segment == ".." and kept and kept[-1] not in ("", ".."):
            kept.pop()
        elif segment == ".." and kept == [""]:
            continue
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)


def _values(arguments: object, name: str) -> Iterator[str]:
    """Yield the values below every member of that name, as texts."""
    match arguments:
        case dict():
            for key, value in arguments.items():
                yield from _leaves(value) if key == name else _values(value, name)
        case list():
            for each in arguments:
                yield from _values(each, name)


def _leaves(value: object) -> Iterator[str]:
    match value:
        case dict():
            for each in value.values():
                yield from _leaves(each)
        case list():
            for each in value:
                yield from _leaves(each)
        case str():
            yield value
        case _:
            yield json.dumps(value)
