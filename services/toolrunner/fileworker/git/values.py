"""Values in requests about repositories and their answers."""

from enum import StrEnum
from typing import Final

from toolrunner.fileworker.values import Value

FILES_MAX: Final = 2000
FILES_BYTES_MAX: Final = 1024 * 1024
REPOSITORIES_MAX: Final = 32


class FileState(StrEnum):
    """How a file differs; names are those of the proto."""

    ADDED = "added"
    MODIFIED = "modified"
    DELETED = "deleted"
    RENAMED = "renamed"
    COPIED = "copied"
    TYPE_CHANGED = "type_changed"
    UNTRACKED = "untracked"
    CONFLICTED = "conflicted"


class GitFile(Value, frozen=True):
    """A changed file; names may contain invalid UTF-8."""

    path: str
    state: FileState
    old_path: str = ""
    added_lines: int = 0
    deleted_lines: int = 0
    is_binary: bool = False
    is_staged: bool = False


class Repository(Value, frozen=True):
    """A repository and how it differs from its last commit."""

    directory: str  # Relative to the workspace; empty for the root.
    branch: str = ""
    commit: str = ""
    upstream: str = ""
    ahead: int = 0
    behind: int = 0
    origin_url: str = ""
    files: tuple[GitFile, ...] = ()
    omitted_files: int = 0
    added_lines: int = 0
    deleted_lines: int = 0
    problem: str = ""


class Checkpoint(Value, frozen=True):
    """A stored state of a repository's files."""

    ref: str
    directory: str
    commit: str
    parent_commit: str
    label: str
    created_s: int  # Seconds since 1970.


def bounded_files(files: list[GitFile]) -> tuple[tuple[GitFile, ...], int]:
    """Return as many files as one response may have, and the number of omitted ones."""
    size = 0
    for count, file in enumerate(files):
        size += len(file.path) + len(file.old_path) + 32
        if count >= FILES_MAX or size > FILES_BYTES_MAX:
            return tuple(files[:count]), len(files) - count
    return tuple(files), 0
