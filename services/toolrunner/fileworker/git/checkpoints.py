"""Checkpoints: states of all files of a repository, stored as commits under hidden references.

Theory: a checkpoint is made with a separate index, which is kept beside the repository's, so that
only files that changed since the last one are read again. Files are stored byte by byte, whatever
the attributes say, so that a restore returns the same bytes. Branch, index and files are not
changed.
"""

import re
import time
from collections.abc import Generator
from pathlib import Path
from typing import Final

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.git.command import Git, failed
from toolrunner.fileworker.git.diff import find_commits
from toolrunner.fileworker.git.diff_output import DiffReader
from toolrunner.fileworker.git.protocol import (
    Checkpoint,
    Checkpoints,
    CreateCheckpoint,
    Created,
    ListCheckpoints,
    bounded_files,
)
from toolrunner.fileworker.git.repositories import RepositoryPaths, repository_of
from toolrunner.fileworker.git.status import empty_tree
from toolrunner.fileworker.jobs import Pause, Readable

REFS: Final = "refs/agent"
#: Per chat, or for all users, in one repository.
CHECKPOINTS_MAX: Final = 200
OWN_DIRECTORY: Final = "parley"
INDEX: Final = "checkpoints.index"
TREES: Final = ("diff-tree", "-r", "--raw", "--numstat", "-z", "--no-ext-diff", "--no-textconv")
#: The error of a nested repository, which has its own checkpoints.
EMPTY_INSIDE: Final = "does not have a commit checked out"
FORMAT: Final = "%(refname)%00%(objectname)%00%(parent)%00%(creatordate:unix)"

_REF: Final = re.compile(rf"{REFS}/([A-Za-z0-9-]+)/([A-Za-z0-9._-]+)")

Steps = Readable | Pause


def create_checkpoint(
    git: Git, root: Root, request: CreateCheckpoint
) -> Generator[Steps, None, Created]:
    """Store the state of all files that git does not ignore.

    Raises:
        FileRefused: There is no such repository, or git fails.
    """
    until_s = time.monotonic() + request.timeout_s
    repository_paths = repository_of(root, request.directory)
    checkpoint = yield from keep(git, repository_paths, request.scope, request.label, until_s)
    known = yield from git.known(repository_paths, until_s)
    base = checkpoint.parent_commit or empty_tree(known.settings)
    reader = yield from changes(
        git, repository_paths, base, checkpoint.commit, until_s, "--find-renames"
    )
    return Created(checkpoint, bounded_files(reader.files())[0])


def list_checkpoints(
    git: Git, root: Root, request: ListCheckpoints
) -> Generator[Steps, None, Checkpoints]:
    """Return checkpoints, newest first.

    Raises:
        FileRefused: There is no such repository, or git fails.
    """
    until_s = time.monotonic() + request.timeout_s
    repository_paths = repository_of(root, request.directory)
    below = f"{REFS}/{request.scope}/" if request.scope else f"{REFS}/"
    end = request.start + request.limit
    arguments = ("for-each-ref", f"--format={FORMAT}", "--sort=-creatordate", f"--count={end + 1}")
    output = yield from git.output(repository_paths, (*arguments, below), until_s)
    found = [
        _listed(repository_paths, line) for line in output.decode(errors="replace").splitlines()
    ]
    known = [checkpoint for checkpoint in found if checkpoint is not None]
    return Checkpoints(tuple(known[request.start : end]), len(known) > end)


def keep(
    git: Git,
    repository_paths: RepositoryPaths,
    scope: str,
    label: str,
    until_s: float,
    *,
    spared: str = "",
) -> Generator[Steps, None, Checkpoint]:
    """Store the state of all files under a label; the oldest of too many are deleted.

    Args:
        git: Runs git.
        repository_paths: The repository.
        scope: The scope of the checkpoint.
        label: Its name; one of that name is replaced.
        until_s: The deadline.
        spared: Another reference that is not deleted, however old it is.

    Raises:
        FileRefused: Git fails.
    """
    index = yield from _staged(git, repository_paths, until_s)
    output = yield from git.output(
        repository_paths, ("write-tree",), until_s, index=index, is_exact=True
    )
    tree = output.decode().strip()
    (parent,) = yield from find_commits(git, repository_paths, ["HEAD"], until_s)
    above = ("-p", parent) if parent else ()
    made = ("commit-tree", *above, "-m", f"Checkpoint {label}", tree)
    commit = (yield from git.output(repository_paths, made, until_s)).decode().strip()
    ref = f"{REFS}/{scope}/{label}"
    yield from git.output(repository_paths, ("update-ref", ref, commit), until_s)
    yield from _prune(git, repository_paths, scope, frozenset({ref, spared}), until_s)
    stored = yield from git.output(
        repository_paths, ("show", "-s", "--format=%ct", commit), until_s
    )
    return Checkpoint(ref, repository_paths.directory, commit, parent, label, int(stored))


def _prune(
    git: Git, repository_paths: RepositoryPaths, scope: str, spared: frozenset[str], until_s: float
) -> Generator[Steps, None, None]:
    """Delete the oldest checkpoints of one scope; git removes their unreferenced objects."""
    listing = ("for-each-ref", "--format=%(refname)", "--sort=-creatordate", f"{REFS}/{scope}/")
    output = yield from git.output(repository_paths, listing, until_s)
    refs = output.decode(errors="replace").splitlines()
    surplus = [ref for ref in refs[CHECKPOINTS_MAX:] if ref not in spared]
    if surplus:
        deleting = "".join(f"delete {ref}\n" for ref in surplus).encode()
        yield from git.output(repository_paths, ("update-ref", "--stdin"), until_s, input=deleting)


def changes(
    git: Git, repository_paths: RepositoryPaths, old: str, new: str, until_s: float, *options: str
) -> Generator[Steps, None, DiffReader]:
    """Return the diff of two states."""
    reader = DiffReader(0)
    arguments = (*TREES, *options, old, new, "--")
    reader.feed((yield from git.output(repository_paths, arguments, until_s)))
    reader.finish()
    return reader


def find_checkpoint(
    git: Git, repository_paths: RepositoryPaths, ref: str, until_s: float
) -> Generator[Steps, None, str]:
    """Return the commit of a checkpoint.

    Raises:
        FileRefused: There is none.
    """
    found = [""]
    if _REF.fullmatch(ref):
        found = yield from find_commits(git, repository_paths, [ref], until_s)
    if not found[0]:
        text = f"there is no checkpoint {ref!r}; list them to see their references"
        raise errors.FileRefused(errors.Reason.CHECKPOINT_NOT_FOUND, text, checkpoint=ref)
    return found[0]


def _staged(
    git: Git, repository_paths: RepositoryPaths, until_s: float
) -> Generator[Steps, None, Path]:
    """Return the separate index, updated to the current files."""
    own = repository_paths.git / OWN_DIRECTORY
    own.mkdir(mode=0o700, exist_ok=True)
    index = own / INDEX
    # There is only one file worker, so a lock was left by a killed one.
    index.with_name(f"{INDEX}.lock").unlink(missing_ok=True)
    adding = ("add", "--all", "--ignore-errors", "--", ".")
    ran = yield from git.run(repository_paths, adding, until_s, index=index, is_exact=True)
    problems = [line for line in ran.error.splitlines() if line.startswith(("error:", "fatal:"))]
    real = [line for line in problems if EMPTY_INSIDE not in line]
    if ran.code != 0 and (real or not problems):
        raise failed(repository_paths.directory, "\n".join(real))
    yield from _mind_ignored(git, repository_paths, index, until_s)
    return index


def _mind_ignored(
    git: Git, repository_paths: RepositoryPaths, index: Path, until_s: float
) -> Generator[Steps, None, None]:
    """Add the ignored files that the repository tracks anyway, and no others."""
    arguments = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
    theirs = frozenset(
        (yield from git.output(repository_paths, arguments, until_s)).split(b"\0")
    ) - {b""}
    ours = yield from git.output(repository_paths, arguments, until_s, index=index, is_exact=True)
    surplus = frozenset(ours.split(b"\0")) - {b""} - theirs
    for options, paths in ((("--force-remove",), surplus), (("--add", "--remove"), theirs)):
        if paths:
            updating = ("update-index", *options, "-z", "--stdin")
            data = b"".join(path + b"\0" for path in sorted(paths))
            yield from git.output(
                repository_paths, updating, until_s, index=index, is_exact=True, input=data
            )


def _listed(repository_paths: RepositoryPaths, line: str) -> Checkpoint | None:
    ref, commit, parents, created = line.split("\0")
    named = _REF.fullmatch(ref)
    if named is None or not created:
        return None
    parent = parents.partition(" ")[0]
    return Checkpoint(ref, repository_paths.directory, commit, parent, named[2], int(created))
