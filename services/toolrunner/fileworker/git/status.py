"""The status of a repository: one run of git, and a second if there are changes."""

import errno
import os
import re
import stat
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git import configuration
from toolrunner.fileworker.git.command import Git
from toolrunner.fileworker.git.diff_output import DiffReader
from toolrunner.fileworker.git.protocol import FileState, GitFile, Repository, bounded_files
from toolrunner.fileworker.git.repositories import RepositoryPaths, find_repositories, repository_of
from toolrunner.fileworker.git.status_output import Entry, Status, parse_status
from toolrunner.fileworker.jobs import PAUSE, Pause, Readable

#: The empty tree, by object format.
EMPTY_TREES: Final = {
    "sha1": "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    "sha256": "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
STATUS: Final = (
    *("status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all"),
    *("--find-renames", "--ignore-submodules=dirty"),
)
#: For every diff: no program of the repository, and no content of submodules.
DIFF: Final = (
    *("diff", "--no-ext-diff", "--no-textconv", "--no-color", "--raw", "--numstat", "-z"),
    *("--find-renames", "--ignore-submodules=dirty"),
)
#: Limits on untracked files whose lines are counted.
COUNTED_FILES_MAX: Final = 10_000
COUNTED_BYTES_MAX: Final = 32 * 1024 * 1024
#: As far as git searches for a NUL.
SNIFFED_BYTES: Final = 8000
READ_BYTES: Final = 256 * 1024

StatusJob = Generator[Readable | Pause, None, Repository]
ADDRESS_MAX: Final = 2000
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")


def without_credentials(address: str) -> str:
    """Return a URL without passwords, tokens and the query.

    The user in `git@host:path` and `ssh://git@host` is not a secret.
    """
    if not _SCHEME.match(address):
        return address[:ADDRESS_MAX]
    try:
        parts = urlsplit(address)
    except ValueError:
        return ""
    users, at, host = parts.netloc.rpartition("@")
    is_ssh = parts.scheme in ("ssh", "git+ssh")
    user = f"{users.partition(':')[0]}@" if at and is_ssh and users else ""
    return urlunsplit((parts.scheme, f"{user}{host}", parts.path, "", ""))[:ADDRESS_MAX]


def find_statuses(
    git: Git, root: Root, directory: str, timeout_s: float
) -> Generator[Readable | Pause, None, tuple[Repository, ...]]:
    """Return the repository that a directory is in, or all of them.

    Raises:
        FileRefused: There is none where one was requested.
    """
    places = []
    if directory:
        places.append(repository_of(root, directory))
    else:
        for found in find_repositories(root):
            if isinstance(found, Pause):
                yield found
            else:
                places.append(found)
    until_s = time.monotonic() + timeout_s
    looked = []
    for repository_paths in places:
        looked.append((yield from status_of(git, root, repository_paths, until_s)))
    return tuple(looked)


def status_of(git: Git, root: Root, repository_paths: RepositoryPaths, until_s: float) -> StatusJob:
    """Return the status of a repository; an error of git is returned in it."""
    try:
        return (yield from _status(git, root, repository_paths, until_s))
    except errors.FileRefused as refused:
        problem = refused.metadata.get("problem", str(refused))
        return Repository(repository_paths.directory, problem=problem)


def empty_tree(settings: configuration.Settings) -> str:
    """Return the id of the empty tree."""
    kind = configuration.last_value(settings, "extensions.objectformat").lower() or "sha1"
    return EMPTY_TREES.get(kind, EMPTY_TREES["sha1"])


def _status(git: Git, root: Root, repository_paths: RepositoryPaths, until_s: float) -> StatusJob:
    known = yield from git.known(repository_paths, until_s)
    status = parse_status((yield from git.output(repository_paths, STATUS, until_s)))
    reader = DiffReader(0)
    if any(entry.state is not FileState.UNTRACKED for entry in status.entries):
        base = status.commit or empty_tree(known.settings)
        reader.feed((yield from git.output(repository_paths, (*DIFF, base, "--"), until_s)))
        reader.finish()
    counting = UntrackedCounter(root, repository_paths)
    files = []
    for entry in status.entries:
        files.append(counting.file(entry, reader))
        if entry.state is FileState.UNTRACKED:
            yield PAUSE
    shown, omitted = bounded_files(files)
    lines = [counts for counts in reader.counts.values() if counts]
    new = [file for file in files if file.state is FileState.UNTRACKED]
    origin = configuration.last_value(known.settings, "remote.origin.url")
    return Repository(
        directory=repository_paths.directory,
        branch=status.branch,
        commit=status.commit,
        upstream=status.upstream,
        ahead=status.ahead,
        behind=status.behind,
        origin_url=without_credentials(origin),
        files=shown,
        omitted_files=omitted,
        added_lines=sum(added for added, _ in lines) + sum(file.added_lines for file in new),
        deleted_lines=sum(deleted for _, deleted in lines),
        problem=_problem(repository_paths, status),
    )


def _problem(repository_paths: RepositoryPaths, status: Status) -> str:
    conflicts = sum(entry.state is FileState.CONFLICTED for entry in status.entries)
    what = repository_paths.under_way()
    if conflicts:
        return f"{what or 'a merge was left'}, with conflicts in {conflicts} files"
    return what


@dataclass
class UntrackedCounter:
    """Counts lines of untracked files, without git."""

    root: Root
    repository_paths: RepositoryPaths
    left_files: int = field(default=COUNTED_FILES_MAX)
    left_bytes: int = field(default=COUNTED_BYTES_MAX)

    def file(self, entry: Entry, reader: DiffReader) -> GitFile:
        """Return an entry with its line counts."""
        if entry.state is FileState.UNTRACKED:
            lines = self._lines(entry.path)
            return GitFile(entry.path, entry.state, "", lines or 0, 0, lines is None)
        counts = reader.counts.get(entry.path, (0, 0))
        added, deleted = counts or (0, 0)
        return GitFile(
            path=entry.path,
            state=entry.state,
            old_path=entry.old_path,
            added_lines=added,
            deleted_lines=deleted,
            is_binary=counts is None,
            is_staged=entry.is_staged,
        )

    def _lines(self, path: str) -> int | None:
        """Return the number of lines of a file, or None if it is binary."""
        if self.left_files <= 0:
            return 0
        self.left_files -= 1
        above = f"{self.repository_paths.directory}/" if self.repository_paths.directory else ""
        try:
            with self.root.opened(above + path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as fd:
                found = os.fstat(fd)
                if not stat.S_ISREG(found.st_mode) or found.st_size > self.left_bytes:
                    return 0
                self.left_bytes -= found.st_size
                return _count(fd)
        except OSError as error:
            # Git stores the target of a link as one line.
            return int(error.errno == errno.ELOOP)


def _count(fd: int) -> int | None:
    lines, last = 0, b"\n"
    is_first = True
    while data := os.read(fd, READ_BYTES):
        if is_first and b"\0" in data[:SNIFFED_BYTES]:
            return None
        is_first = False
        lines, last = lines + data.count(b"\n"), data[-1:]
    return lines + (last != b"\n")
