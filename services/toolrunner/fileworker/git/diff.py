"""Diffs as text: between commits, or of the current files, new ones included."""

import os
import shutil
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git.command import Git, failed
from toolrunner.fileworker.git.diff_output import DiffReader
from toolrunner.fileworker.git.protocol import Diff, GitDiff, bounded_files
from toolrunner.fileworker.git.repositories import RepositoryPaths, repository_of
from toolrunner.fileworker.git.status import DIFF, empty_tree
from toolrunner.fileworker.jobs import Pause, Readable

#: Bytes of skipped text after which reading stops.
SKIPPED_BYTES_MAX: Final = 256 * 1024 * 1024
MISSING: Final = (b"missing", b"ambiguous")

Working = Generator[Readable | Pause, None, Diff]


def read_diff(git: Git, root: Root, request: GitDiff) -> Working:
    """Return a diff.

    Raises:
        FileRefused: There is no such repository or commit, or git fails.
    """
    until_s = time.monotonic() + request.timeout_s
    repository_paths = repository_of(root, request.directory)
    names = [request.base or "HEAD", *([request.target] if request.target else [])]
    commits = yield from find_commits(git, repository_paths, names, until_s)
    base, target = commits[0], commits[1] if request.target else ""
    if request.base and not base:
        raise no_commit("base", request.base)
    if request.target and not target:
        raise no_commit("target", request.target)
    known = yield from git.known(repository_paths, until_s)
    ends = (base or empty_tree(known.settings), *([target] if target else []))
    with temporary_index(git, repository_paths) as index:
        if not target:
            yield from _note_untracked(git, repository_paths, index, request.paths, until_s)
        reader = yield from _read(git, repository_paths, index, ends, request, until_s)
    files, omitted = bounded_files(reader.files())
    return Diff(
        files=files,
        patch=reader.patch,
        omitted_paths=tuple(reader.omitted),
        is_truncated=bool(omitted or reader.omitted),
        base_commit=base,
        target_commit=target,
    )


def find_commits(
    git: Git, repository_paths: RepositoryPaths, names: Sequence[str], until_s: float
) -> Generator[Readable, None, list[str]]:
    """Return the commits of names; empty for names without one."""
    asked = "".join(f"{name}^{{commit}}\n" for name in names)
    arguments = ("cat-file", "--batch-check=%(objectname)")
    output = yield from git.output(repository_paths, arguments, until_s, input=os.fsencode(asked))
    return [
        "" if line.endswith(MISSING) else line.decode()
        for line in output.splitlines()[: len(names)]
    ]


def no_commit(field: str, name: str) -> errors.FileRefused:
    """Return the error for a name without a commit."""
    text = f"there is no commit, branch, tag or checkpoint {name!r}; name one that exists"
    return errors.FileRefused(errors.Reason.INVALID_REQUEST, text, field=field)


@contextmanager
def temporary_index(git: Git, repository_paths: RepositoryPaths) -> Iterator[Path]:
    """Copy the repository's index in a context; the original is not changed."""
    directory = Path(tempfile.mkdtemp(prefix="index-", dir=git.own()))
    index = directory / "index"
    try:
        with (repository_paths.git / "index").open("rb") as source, index.open("wb") as copy:
            shutil.copyfileobj(source, copy)
            found = os.fstat(source.fileno())
        # Files changed at the time of the last index write are detected by its mtime.
        os.utime(index, ns=(found.st_atime_ns, found.st_mtime_ns))
    except FileNotFoundError:
        index.unlink(missing_ok=True)
    try:
        yield index
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _note_untracked(
    git: Git, repository_paths: RepositoryPaths, index: Path, paths: Sequence[str], until_s: float
) -> Generator[Readable, None, None]:
    """Mark new files as added in the index, without storing their content."""
    arguments = ("ls-files", "-z", "--others", "--exclude-standard", "--", *paths)
    output = yield from git.output(repository_paths, arguments, until_s)
    new = [path for path in output.split(b"\0") if path and not path.endswith(b"/")]
    if new:
        adding = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
        yield from git.run(repository_paths, adding, until_s, index=index, input=b"\0".join(new))


def _read(
    git: Git,
    repository_paths: RepositoryPaths,
    index: Path,
    ends: Sequence[str],
    request: GitDiff,
    until_s: float,
) -> Generator[Readable, None, DiffReader]:
    text = () if request.is_files_only else ("--patch", f"--unified={request.context_lines}")
    prefixes = ("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
    arguments = (*DIFF, *text, *prefixes, *ends, "--", *request.paths)
    reader = DiffReader(request.max_bytes)
    seen = 0

    def take(data: bytes) -> bool:
        nonlocal seen
        seen += len(data)
        reader.feed(data)
        return seen <= SKIPPED_BYTES_MAX

    ran = yield from git.run(repository_paths, arguments, until_s, index=index, take=take)
    if ran.code != 0 and seen <= SKIPPED_BYTES_MAX:
        raise failed(repository_paths.directory, ran.error)
    reader.finish()
    if seen > SKIPPED_BYTES_MAX:
        reader.omitted.extend(raw.path for raw in reader.raw if raw.path not in reader.read_paths)
    return reader
