"""Entries, changes and the plan of a restore, as values.

Theory: a checkpoint is not a copy of a tree. It is the list of changes that a turn made, each with
the entry before and after. To restore a chat to the start of a turn, each path that the chat
changed since gets the entry before the first of these changes, if it still is as the last of them
left it; otherwise somebody else has changed it since, and it is left as it is.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

#: A mode that is not known.
NO_MODE: Final = -1


class EntryKind(StrEnum):
    """The type of an entry; the names are those of `filesystem.tree.Kind`."""

    FILE = "file"
    DIRECTORY = "directory"
    LINK = "link"
    SPECIAL = "special"


class Entry(msgspec.Struct, frozen=True, array_like=True):
    """A file, a directory or a link at one moment.

    Attributes:
        kind: Its type.
        etag: Of its content; the target of a link is its content, a directory has none.
        mode: Its permission bits.
        is_kept: Whether the content is stored.
    """

    kind: EntryKind
    etag: str
    mode: int = NO_MODE
    is_kept: bool = True

    def equals(self, other: "Entry | None") -> bool:
        """Return whether another has the same type and content."""
        return other is not None and (self.kind, self.etag) == (other.kind, other.etag)


@dataclass(frozen=True, slots=True)
class Turn:
    """The turn of a chat: the chat, and the message that started the turn."""

    chat_id: str
    turn_id: int


#: The author of changes that no turn made: a person, or a program outside of any turn.
OUTSIDE: Final = Turn("", 0)


#: Of a chat that started none.
NO_AGENTS: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Change:
    """A path before and after it was changed; None if there was nothing.

    Attributes:
        sequence: Its place among the changes of the workspace.
        path: The path, relative to the root.
        before: The entry before.
        after: The entry after.
        turn: Who changed it.
        is_shared: Whether a turn of another chat may have made it as well.
    """

    sequence: int
    path: str
    before: Entry | None
    after: Entry | None
    turn: Turn
    is_shared: bool = False


class Outcome(StrEnum):
    """What a restore does to a path, or why it leaves it as it is; the names are the proto's."""

    RESTORED = "restored"
    UNCHANGED = "unchanged"  # It is as it was already.
    CONFLICT = "conflict"  # Another chat or a person has changed it since.
    NOT_KEPT = "not_kept"  # Its content was too large, or is not stored any more.
    FAILED = "failed"  # The workspace refuses the write.


@dataclass(frozen=True, slots=True)
class Step:
    """The restore of one path.

    Attributes:
        path: The path.
        found: The entry that is there before the restore.
        target: The entry to restore.
        outcome: What is to be done, or was done.
    """

    path: str
    found: Entry | None
    target: Entry | None
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a chat's changes of one path amount to.

    Attributes:
        path: The path.
        target: The entry before the first change.
        expected: The entry after the last.
        is_disputed: Whether another chat or a person has changed it in between or meanwhile.
    """

    path: str
    target: Entry | None
    expected: Entry | None
    is_disputed: bool


def wanted_by(
    turn: Turn, changes: Iterable[Change], agents: frozenset[str] = NO_AGENTS
) -> list[Wanted]:
    """Return the paths that a chat changed in a turn or later, by path.

    Args:
        turn: The first turn to take back.
        changes: All changes of these paths, in order.
        agents: The agents that the chat started since, whose changes count as its own.
    """
    found: dict[str, Wanted] = {}
    for change in changes:
        author = change.turn
        is_own = author.chat_id in agents or (
            author.chat_id == turn.chat_id and author.turn_id >= turn.turn_id
        )
        known = found.get(change.path)
        if known is not None:
            is_disputed = known.is_disputed or change.is_shared or not is_own
            expected = change.after if is_own else known.expected
            found[change.path] = Wanted(change.path, known.target, expected, is_disputed)
        elif is_own:
            found[change.path] = Wanted(change.path, change.before, change.after, change.is_shared)
    return [found[path] for path in sorted(found)]


def step_of(wanted: Wanted, now: Entry | None) -> Step:
    """Return what to do with a path, given the entry that is there now."""
    path, target, expected = wanted.path, wanted.target, wanted.expected
    if _is_same(now, target) and _has_mode(now, target):
        outcome = Outcome.UNCHANGED
    elif wanted.is_disputed or not (_is_same(now, expected) or _is_same(now, target)):
        outcome = Outcome.CONFLICT
    elif not _is_restorable(target) or not _is_restorable(now):
        outcome = Outcome.NOT_KEPT
    else:
        outcome = Outcome.RESTORED
    return Step(path, now, target, outcome)


def _is_same(one: Entry | None, other: Entry | None) -> bool:
    return one is other if one is None else one.equals(other)


def _has_mode(now: Entry | None, target: Entry | None) -> bool:
    if now is None or target is None or target.kind is EntryKind.LINK:
        return True
    return NO_MODE in (now.mode, target.mode) or now.mode == target.mode


def _is_restorable(entry: Entry | None) -> bool:
    """Return whether an entry can be made again from what is stored; it must be, to be undone."""
    return entry is None or (entry.is_kept and entry.kind is not EntryKind.SPECIAL)
