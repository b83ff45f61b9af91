"""Content search: the paths of a request one after the other, and batching of the results."""

import os
import select
import stat
import time
from collections.abc import Generator
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from toolrunner.filesystem import errors
from toolrunner.filesystem.beneath import Root
from toolrunner.fileworker.content.snapshot import check_regular, reopened
from toolrunner.fileworker.jobs import Readable
from toolrunner.fileworker.protocol import FileMatches, Matches, SearchFiles, Summary
from toolrunner.fileworker.search import ripgrep
from toolrunner.fileworker.search.gitignore import Ignores, ignores_at
from toolrunner.fileworker.search.ripgrep_output import Outcome

#: The number of cached rules of directories.
KNOWN_MAX: Final = 1000
#: How long results wait for more, and the maximum of lines that wait.
BATCH_S: Final = 0.05
BATCH_LINES_MAX: Final = 2000

Found = Readable | FileMatches


def search_files(
    root: Root, program: str, request: SearchFiles
) -> Generator[Readable | Matches, None, Summary]:
    """Search with ripgrep; results are batched.

    Raises:
        FileRefused: A path cannot be searched, or the pattern cannot be parsed.
    """
    begun_s = time.monotonic()
    until_s = begun_s + request.timeout_s
    total = Outcome()
    files: set[str] = set()
    found = 0
    for asked in request.paths or ("",):
        rest = msgspec.structs.replace(request, limit=request.limit - found)
        outcome = yield from _batched(_with_ripgrep(root, program, asked, rest, until_s), files)
        total = replace(
            total,
            matches=total.matches + outcome.matches,
            searched_files=total.searched_files + outcome.searched_files,
            is_truncated=outcome.is_truncated,
            is_timed_out=outcome.is_timed_out,
        )
        found = total.matches if request.mode == "matches" else len(files)
        if found >= request.limit or outcome.is_truncated or outcome.is_timed_out:
            break
    return Summary(
        files=len(files),
        matches=total.matches,
        searched_files=total.searched_files,
        truncated=total.is_truncated or total.is_timed_out,
        timed_out=total.is_timed_out,
        duration_s=time.monotonic() - begun_s,
    )


def _batched(
    search: Generator[Found, None, Outcome], files: set[str]
) -> Generator[Readable | Matches, None, Outcome]:
    """Pass results on in few batches: each message costs more than its content."""
    batch = _Batch()
    while True:
        try:
            output = next(search)
        except StopIteration as end:
            if batch.found:
                yield batch.flush()
            outcome: Outcome = end.value
            return outcome
        if isinstance(output, FileMatches):
            files.add(output.path)
            batch.add(output)
            if batch.lines >= BATCH_LINES_MAX:
                yield batch.flush()
        else:
            yield from _until_readable(output, batch)


def _until_readable(output: Readable, batch: "_Batch") -> Generator[Readable | Matches, None, None]:
    """Wait for a readable descriptor, and pass on results that are due meanwhile."""
    if batch.found:
        yield Readable(output.fd, min(output.until_s, batch.due_s))
        if batch.is_due():
            yield batch.flush()
        elif time.monotonic() < output.until_s:
            return
        if select.select([output.fd], [], [], 0)[0]:
            return
    yield output


@dataclass
class _Batch:
    """Results that are not passed on yet."""

    found: list[FileMatches] = field(default_factory=list)
    lines: int = 0
    due_s: float = 0.0

    def add(self, file: FileMatches) -> None:
        if not self.found:
            self.due_s = time.monotonic() + BATCH_S
        self.found.append(file)
        self.lines += 1 + len(file.lines)

    def is_due(self) -> bool:
        return bool(self.found) and time.monotonic() >= self.due_s

    def flush(self) -> Matches:
        matches = Matches(tuple(self.found))
        self.found, self.lines = [], 0
        return matches


def _checked(root: Root, asked: str) -> str:
    """Return a path without links.

    Raises:
        FileRefused: It does not exist, or is neither a directory nor a file.
    """
    path = root.relative(asked)
    try:
        with root.opened(path, os.O_PATH) as fd:
            result = os.fstat(fd)
            if not stat.S_ISDIR(result.st_mode):
                check_regular(result, asked)
            return root.path_of(fd, path)
    except OSError as error:
        raise errors.refusal_of(error, asked) from error


def _with_ripgrep(
    root: Root, program: str, asked: str, request: SearchFiles, until_s: float
) -> Generator[Found, None, Outcome]:
    path = _checked(root, asked)
    try:
        fd, base, name = _opened(root, path, asked)
    except OSError as error:
        raise errors.refusal_of(error, asked) from error
    # Ripgrep applies ignore rules, except those of parent directories, or if globs are given.
    knows = not base and not request.globs
    shown = _Shown(root, base, everything=bool(name) or request.include_ignored or knows)
    try:
        search = ripgrep.search(program, ripgrep.Where(fd, name, shown), request, until_s)
        while True:
            try:
                output = next(search)
            except StopIteration as end:
                outcome: Outcome = end.value
                return outcome
            if base and isinstance(output, FileMatches):
                output = msgspec.structs.replace(output, path=_joined(base, output.path))
            yield output
    finally:
        os.close(fd)


def _opened(root: Root, path: str, asked: str) -> tuple[int, str, str]:
    """Open a search path; return it with the directory and, for a file, its name there."""
    try:
        return root.open(path, os.O_PATH | os.O_DIRECTORY), path, ""
    except NotADirectoryError:
        base, _, name = path.rpartition("/")
        with root.opened(path, os.O_PATH) as found:
            check_regular(os.fstat(found), asked)
            return reopened(found), base, name


def _joined(base: str, path: str) -> str:
    return f"{base}/{path}" if base else path


@dataclass
class _Shown:
    """Decides whether a file below a directory is neither hidden nor ignored."""

    root: Root
    base: str
    everything: bool
    known: dict[str, Ignores] = field(default_factory=dict)

    def __call__(self, path: str) -> bool:
        parts = path.split("/")
        if self.everything:
            return True
        if any(part.startswith(".") for part in parts):
            return False
        return not any(
            self._rules("/".join(parts[:depth])).ignores(
                _joined(self.base, "/".join(parts[: depth + 1])),
                is_directory=depth + 1 < len(parts),
            )
            for depth in range(len(parts))
        )

    def _rules(self, directory: str) -> Ignores:
        full = _joined(self.base, directory).rstrip("/")
        if full not in self.known:
            if len(self.known) >= KNOWN_MAX:
                self.known.clear()
            self.known[full] = ignores_at(self.root, full)
        return self.known[full]
