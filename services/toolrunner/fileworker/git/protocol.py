"""What is asked about repositories, and what is answered."""

from toolrunner.fileworker.git.values import Checkpoint, GitFile, Repository
from toolrunner.fileworker.values import Value


class GitStatus(Value, frozen=True):
    """Asks how repositories differ from their last commits."""

    directory: str  # One in the repository wanted; empty for all.
    timeout_s: float


class Repositories(Value, frozen=True):
    """The repositories."""

    repositories: tuple[Repository, ...]


class GitDiff(Value, frozen=True):
    """Asks for a difference."""

    directory: str
    base: str  # Empty for the last commit.
    target: str  # Empty for the files as they are.
    paths: tuple[str, ...]
    context_lines: int
    max_bytes: int
    is_files_only: bool
    timeout_s: float


class Diff(Value, frozen=True):
    """A difference."""

    files: tuple[GitFile, ...]
    patch: str
    omitted_paths: tuple[str, ...]
    is_truncated: bool
    base_commit: str
    target_commit: str


class WatchGit(Value, frozen=True):
    """Follows all repositories, as a stream."""

    cooldown_s: float  # Between two looks.
    quiet_s: float  # Nothing more may change for so long before the next look.
    unchanged_s: float  # After which it says that nothing changed.
    rescan_s: float  # Between two looks if not everything can be watched.
    timeout_s: float  # For one look.


class Removed(Value, frozen=True):
    """A repository is no more."""

    directory: str


class Unchanged(Value, frozen=True):
    """Nothing changed for a while."""


class CreateCheckpoint(Value, frozen=True):
    """Keeps the state of all files."""

    directory: str
    scope: str  # The part of the reference that names whose it is.
    label: str
    timeout_s: float


class Created(Value, frozen=True):
    """The checkpoint, and what it has that the last commit has not."""

    checkpoint: Checkpoint
    files: tuple[GitFile, ...]


class ListCheckpoints(Value, frozen=True):
    """Asks for checkpoints, newest first."""

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
    """Puts files back as a checkpoint holds them."""

    directory: str
    scope: str
    previous_label: str  # Of the checkpoint that is made first.
    ref: str
    paths: tuple[str, ...]
    if_unchanged_since_ref: str
    removes_later: bool  # Whether files that the checkpoint has not are removed.
    timeout_s: float


class Restored(Value, frozen=True):
    """What was changed, and the state before."""

    files: tuple[GitFile, ...]
    previous: Checkpoint


GitRequest = GitStatus | GitDiff | WatchGit | CreateCheckpoint | ListCheckpoints | RestoreCheckpoint
GitAnswer = (
    Repositories | Diff | Repository | Removed | Unchanged | Created | Checkpoints | Restored
)
