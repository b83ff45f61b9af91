"""Requests about repositories, and their answers."""

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


class GitStatus(Value, frozen=True):
    """Requests how repositories differ from their last commits."""

    directory: str  # A directory in the requested repository; empty for all.
    timeout_s: float


class Repositories(Value, frozen=True):
    """The repositories."""

    repositories: tuple[Repository, ...]


class GitDiff(Value, frozen=True):
    """Requests a diff."""

    directory: str
    base: str  # Empty for the last commit.
    target: str  # Empty for the current files.
    paths: tuple[str, ...]
    context_lines: int
    max_bytes: int
    is_files_only: bool
    timeout_s: float


class Diff(Value, frozen=True):
    """A diff."""

    files: tuple[GitFile, ...]
    patch: str
    omitted_paths: tuple[str, ...]
    is_truncated: bool
    base_commit: str
    target_commit: str


class WatchGit(Value, frozen=True):
    """Watches all repositories, as a stream."""

    cooldown_s: float  # The minimum between two scans.
    quiet_s: float  # The time without changes before the next scan.
    unchanged_s: float  # The interval of `Unchanged` answers.
    rescan_s: float  # The interval of scans if not all directories can be watched.
    timeout_s: float  # Of one scan.


class Removed(Value, frozen=True):
    """A repository was removed."""

    directory: str


class Unchanged(Value, frozen=True):
    """Nothing changed for a while."""


class CreateCheckpoint(Value, frozen=True):
    """Stores the state of all files."""

    directory: str
    scope: str  # The part of the reference that names the scope.
    label: str
    timeout_s: float


class Created(Value, frozen=True):
    """The checkpoint, and its difference from the last commit."""

    checkpoint: Checkpoint
    files: tuple[GitFile, ...]


class ListCheckpoints(Value, frozen=True):
    """Requests checkpoints, newest first."""

    directory: str
    scope: str  # Empty for all.
    start: int
    limit: int
    timeout_s: float


class Checkpoints(Value, frozen=True):
    """A page of checkpoints."""

    checkpoints: tuple[Checkpoint, ...]
    has_more: bool


class RestoreCheckpoint(Value, frozen=True):
    """Restores files from a checkpoint."""

    directory: str
    scope: str
    previous_label: str  # Of the checkpoint that is created first.
    ref: str
    paths: tuple[str, ...]
    if_unchanged_since_ref: str
    removes_later: bool  # Whether files that are not in the checkpoint are removed.
    timeout_s: float


class Restored(Value, frozen=True):
    """The changed files, and the state before."""

    files: tuple[GitFile, ...]
    previous: Checkpoint


GitRequest = GitStatus | GitDiff | WatchGit | CreateCheckpoint | ListCheckpoints | RestoreCheckpoint
GitAnswer = (
    Repositories | Diff | Repository | Removed | Unchanged | Created | Checkpoints | Restored
)
