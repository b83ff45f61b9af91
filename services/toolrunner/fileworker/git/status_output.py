"""Parser of the output of `git status --porcelain=v2 -z --branch`."""

import os
from dataclasses import dataclass, field
from typing import Final

from toolrunner.fileworker.git.protocol import FileState

#: The number of fields before the path, including the kind.
_ORDINARY: Final = 8
_RENAMED: Final = 9
_UNMERGED: Final = 10

_NONE: Final = "(initial)"
_DETACHED: Final = "(detached)"


@dataclass(frozen=True, slots=True)
class Entry:
    """A changed path."""

    path: str
    state: FileState
    old_path: str = ""
    is_staged: bool = False  # The whole change is in the index.


@dataclass
class Status:
    """The branch and the entries."""

    commit: str = ""
    branch: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    entries: list[Entry] = field(default_factory=list)


def parse_status(output: bytes) -> Status:
    """Parse the output; records of unknown kinds are ignored."""
    status = Status()
    records = iter(output.split(b"\0"))
    for record in records:
        match record[:2]:
            case b"# ":
                _header(status, record[2:].decode(errors="replace"))
            case b"1 ":
                _, code, *_, path = record.split(b" ", _ORDINARY)
                status.entries.append(Entry(os.fsdecode(path), _state(code), "", _staged(code)))
            case b"2 ":
                _, code, *_, score, path = record.split(b" ", _RENAMED)
                state = FileState.COPIED if score.startswith(b"C") else FileState.RENAMED
                old = os.fsdecode(next(records, b""))
                status.entries.append(Entry(os.fsdecode(path), state, old, _staged(code)))
            case b"u ":
                path = record.split(b" ", _UNMERGED)[-1]
                status.entries.append(Entry(os.fsdecode(path), FileState.CONFLICTED))
            # A directory is a nested repository, which is reported separately.
            case b"? " if not record.endswith(b"/"):
                status.entries.append(Entry(os.fsdecode(record[2:]), FileState.UNTRACKED))
    return status


def _header(status: Status, text: str) -> None:
    name, _, value = text.partition(" ")
    match name:
        case "branch.oid":
            status.commit = "" if value == _NONE else value
        case "branch.head":
            status.branch = "" if value == _DETACHED else value
        case "branch.upstream":
            status.upstream = value
        case "branch.ab":
            ahead, _, behind = value.partition(" ")
            status.ahead, status.behind = int(ahead), -int(behind)


def _staged(code: bytes) -> bool:
    return code[1:] == b"."


def _state(code: bytes) -> FileState:
    """Return the state of a file, from its letters for the index and for the work tree."""
    if b"D" in code:
        return FileState.DELETED
    if b"A" in code:
        return FileState.ADDED
    return FileState.TYPE_CHANGED if b"T" in code else FileState.MODIFIED
